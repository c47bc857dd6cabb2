import { ConnectionLost } from '#src/browsers/link/cdp.ts';
import { createJudge } from '#src/kernel/domain/egress/rules.ts';
import { readHost } from '#src/kernel/domain/egress/hosts.ts';
import type { EgressRules } from '#events/egress.ts';
import type { PageAsked } from './routes/page-call.ts';
import { capturePage, messageBytesMax, resultBytesMax, type Captured } from './captures.ts';
import { connectPage } from './cdp.ts';
import { takePage } from './page.ts';
import { navigationFailed, PageFailure, tooLarge } from './page-failure.ts';

export type Visit = {
  asked: PageAsked;
  /** What the session's pages may connect to; absent: anything. */
  egress?: EgressRules | undefined;
  /** What they are granted, by the names of a create. */
  granted?: readonly string[] | undefined;
  signal: AbortSignal;
};

/**
 * Opens the page in the browser at the address, and takes what is asked for.
 * @throws PageFailure, CdpRefusal, ConnectionLost, SyntaxError, or the reason of the signal
 */
export async function visitPage(
  address: string,
  { asked, egress, granted = [], signal }: Visit,
): Promise<Captured> {
  const { url, viewport } = asked.body;
  const bounds = { signal, bytesMax: messageBytesMax(asked.kind) };
  using cdp = await connectPage(address, bounds);
  try {
    const keepsPdf = asked.kind === 'pdf';
    const page = await takePage(cdp, { viewport, url, granted, keepsPdf, signal });
    try {
      await page.open(url);
    } catch (error) {
      throw refusedByRules(error, url, egress) ?? error;
    }
    // Awaited here: the connection ends with this function.
    return await capturePage(page, asked, signal);
  } catch (error) {
    const isTooLong = error instanceof ConnectionLost && error.isTooLong;
    throw isTooLong ? tooLarge(resultBytesMax(asked.kind)) : error;
  }
}

/** Chromium says that no tunnel was made; the rules say why. Null: they allow the host's name. */
function refusedByRules(error: unknown, url: string, rules?: EgressRules): PageFailure | null {
  if (!(error instanceof PageFailure) || rules === undefined) return null;
  const { protocol, hostname, port } = new URL(url);
  const host = readHost(hostname);
  if (host === null || !/^https?:$/.test(protocol)) return null;
  const judge = createJudge(rules);
  const number = Number(port || (protocol === 'https:' ? 443 : 80));
  const verdict =
    host.kind === 'address' ? judge.address(host.address, number) : judge.name(host.text, number);
  return verdict === 'allowed' ? null : navigationFailed(url, `egress_${verdict}`);
}
