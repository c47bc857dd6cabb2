import { within } from '#src/kernel/async/timeout.ts';
import type { RunningBrowser } from '../browsers.ts';
import { openCdp } from './cdp.ts';

/**
 * Asks Chromium to close as its user would.
 * @param ended resolves when it has ended, however
 * @returns how it has ended; null: not within the time
 */
export async function closeBrowser<Exit>(
  { cdp }: RunningBrowser,
  ended: Promise<Exit>,
  withinMs: number,
): Promise<Exit | null> {
  const signal = AbortSignal.timeout(withinMs);
  // The socket may end before the answer comes.
  ask(cdp, signal).catch(() => undefined);
  return within(withinMs, ended, () => null);
}

async function ask(address: RunningBrowser['cdp'], signal: AbortSignal): Promise<void> {
  using connection = await openCdp(address, signal);
  await connection.send('Browser.close');
}
