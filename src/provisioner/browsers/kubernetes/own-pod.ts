import type { BrowserExit } from '../browsers.ts';
import { isClose } from '../chromium/closed.ts';
import type { PlacedBrowser } from '../own-browsers.ts';
import type { Launched } from './launch.ts';
import type { BrowserPod } from './pods.ts';

/** `exit`: its Pod's last state, where that has ended or is gone. */
export type PodBrowser = PlacedBrowser<Launched, BrowserPod>;

/** 128 + SIGKILL: the exit code where the kernel has killed Chromium itself. */
const KILLED = 137;

/** Why a browser ended, by its Pod's last state and its last output. */
export function reasonOf(pod: BrowserPod, output: string): BrowserExit['reason'] {
  if (isClose(pod.exitCode, output)) return 'browser_closed';
  // The kernel's kill of a page's process ends no browser.
  return pod.isOutOfMemory && pod.exitCode === KILLED ? 'out_of_memory' : 'browser_crashed';
}

/** When it ended, at the latest: now, or what its Pod tells by the node's clock. */
export function endedAtOf({ endedAt }: BrowserPod, now = Date.now()): number {
  return Math.min(endedAt ?? now, now);
}

/** What Kubernetes tells of a Pod's end, as a line for the exit's detail; '': nothing. */
export function toldOf({ reason, isDeleted, node }: BrowserPod): string {
  const where = node === null ? '' : ` on the node ${node}`;
  if (reason !== null) return `Kubernetes ended the Pod${where}: ${reason}`;
  return isDeleted ? `The Pod was deleted${where}` : '';
}
