import type { LinkKeys } from '#src/browser-link/browser-link.ts';
import type { RunningBrowser } from '../browsers.ts';
import { readVersion } from '../chromium/version.ts';
import { CDP_PORT, VNC_PORT, webdriverAt } from './naming.ts';
import type { BrowserPod } from './pods.ts';

/**
 * A browser that does not answer within this is not adopted, and its session fails. Generous: a
 * node on which everything has just restarted is slow.
 */
const ANSWER_MS = 5_000;

/** The browser in a Pod of an earlier process; null if none answers. */
export async function findBrowser(
  { workloadId, phase, address: host, isDeleted }: BrowserPod,
  linkKeys: LinkKeys,
): Promise<RunningBrowser | null> {
  if (phase !== 'running' || host === null || isDeleted) return null;
  const linkKey = linkKeys(workloadId);
  const cdp = { host, port: CDP_PORT, linkKey };
  try {
    const { webSocketDebuggerUrl } = await readVersion(cdp, AbortSignal.timeout(ANSWER_MS));
    const { pathname: path } = new URL(webSocketDebuggerUrl);
    const vnc = { host, port: VNC_PORT, linkKey };
    return { workloadId, cdp: { ...cdp, path }, vnc, webdriver: webdriverAt(host) };
  } catch {
    return null;
  }
}
