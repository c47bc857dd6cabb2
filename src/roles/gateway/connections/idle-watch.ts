/**
 * The byte counts of a spliced connection. Read once a second, so that counting costs nothing.
 */
export type Flow = {
  /** Bytes since the splice; `waiting…` are still in the gateway's buffers. */
  measure(): {
    fromClient: number;
    fromBrowser: number;
    waitingForBrowser: number;
    waitingForClient: number;
  };
  /** Called at every check; `quietMs`: time since a byte moved. Returns an end reason or null. */
  beat?(nowMs: number, quietMs: number): string | null;
};

export type IdleLimits = {
  /** How often all connections are checked. */
  sweepMs: number;
  /** A connection ends after this long without a byte in either direction. */
  idleMs: number;
  /** A connection ends if buffered bytes wait this long for a peer that takes none. */
  stalledMs: number;
};

export type IdleWatch = {
  /** Call it every `sweepMs`. Whether bytes moved since the last call, or why it must end. */
  look(nowMs: number): 'moved' | 'still' | { end: string };
  bytes(): { fromClient: number; fromBrowser: number };
};

/** Distinguishes connections in use, idle connections and stalled ones. */
export function createIdleWatch(flow: Flow, limits: IdleLimits, startMs: number): IdleWatch {
  const toClient = { delivered: 0, clearAtMs: startMs };
  const toBrowser = { delivered: 0, clearAtMs: startMs };
  let movedAtMs = startMs;

  return {
    look(nowMs) {
      const { fromClient, fromBrowser, waitingForClient, waitingForBrowser } = flow.measure();
      const movedOut = advance(toClient, fromBrowser - waitingForClient, waitingForClient, nowMs);
      const movedIn = advance(toBrowser, fromClient - waitingForBrowser, waitingForBrowser, nowMs);
      if (movedOut || movedIn) movedAtMs = nowMs;
      const quietMs = nowMs - movedAtMs;
      const ended = flow.beat?.(nowMs, quietMs) ?? null;
      if (ended !== null) return { end: ended };
      if (nowMs - toClient.clearAtMs >= limits.stalledMs) return { end: 'slow_client' };
      if (nowMs - toBrowser.clearAtMs >= limits.stalledMs) return { end: 'browser_gone' };
      if (quietMs >= limits.idleMs) return { end: 'connection_idle' };
      return quietMs === 0 ? 'moved' : 'still';
    },
    bytes: () => flow.measure(),
  };
}

/** True if bytes were delivered since the last call. */
function advance(
  direction: { delivered: number; clearAtMs: number },
  delivered: number,
  waiting: number,
  nowMs: number,
): boolean {
  const moved = delivered !== direction.delivered;
  direction.delivered = delivered;
  if (moved || waiting === 0) direction.clearAtMs = nowMs;
  return moved;
}
