import { createSecretKey, randomBytes } from 'node:crypto';
import { linkKeyText, type BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { chromiumFlags } from '#src/browsers/chromium/flags.ts';
import { browserCommand } from '#src/browsers/kubernetes/pod.ts';
import { readVersion } from '#src/browsers/chromium/version.ts';
import { firstReply } from './cdp-client.ts';

/** The browser image, run by hand. */

const SCREEN = { width: 1280, height: 800 };
/** Interval between attempts to get a CDP answer. */
const POLL_MS = 5;
const ANSWER_MS = 5_000;

/**
 * What one run of the image gets: its variables, as `NAME=value`, the command that makes its input
 * of them, and Chromium's flags.
 */
export function byHand() {
  const { width, height } = SCREEN;
  const linkKey = createSecretKey(randomBytes(32));
  const link = [`LINK_KEY=${linkKeyText(linkKey)}`, 'VNC_PASSWORD=passw0rd'];
  const values = [...link, `SCREEN_SIZE=${width}x${height}`];
  return {
    linkKey,
    values,
    command: browserCommand(false),
    flags: chromiumFlags({ workloadId: '', vncPassword: '', screen: SCREEN }),
  };
}

/** Polls the browser until it has answered a CDP command. */
export async function untilFirstReply(address: BrowserAddress): Promise<void> {
  for (;;) {
    try {
      const { webSocketDebuggerUrl } = await readVersion(address, AbortSignal.timeout(ANSWER_MS));
      (await firstReply(webSocketDebuggerUrl, address)).terminate();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
