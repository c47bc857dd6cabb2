/** Numbers of the pool with their units. */

const MIB = 1024 ** 2;

export function formatBytes(bytes: number): string {
  const mib = bytes / MIB;
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

export function formatShare(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `about 12 s`, `about 3 min`. */
export function formatEstimate(seconds: number): string {
  return seconds < 90 ? `about ${seconds} s` : `about ${Math.round(seconds / 60)} min`;
}
