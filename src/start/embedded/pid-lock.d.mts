export type LockHolder = { pid: number; start: string };

export declare function takeLock(
  path: string,
): { taken: true; release: () => void } | { taken: false; holder: LockHolder };

export declare function waitForLock(
  path: string,
  options: { waitMs: number; onWait?: (holder: LockHolder) => void },
): Promise<() => void>;

export declare function processStart(pid: number): string | null;

export declare function processCommand(pid: number): string | null;
