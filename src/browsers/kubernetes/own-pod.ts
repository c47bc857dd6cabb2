import type { BrowserPod } from './pods.ts';

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
