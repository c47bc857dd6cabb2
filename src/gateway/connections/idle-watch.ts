/**
 * What a spliced connection tells of itself; read once a second, so that its bytes cost nothing.
 */
export type Flow = {
  /** Bytes since the splice; `waiting…` of them are in our buffers still, the peer takes none. */
  measure(): {
    fromClient: number;
    fromBrowser: number;
    waitingForBrowser: number;
    waitingForClient: number;
  };
  /** Called at every look; `quietMs` is how long no byte has moved. Returns why to end, or null. */
  beat?(nowMs: number, quietMs: number): string | null;
};

export type WatchLimits = {
  /** How often all connections are looked at. */
  sweepMs: number;
  /** No byte in either direction for this long ends a connection. */
  idleMs: number;
  /** Bytes that wait this long for a peer that takes none of them end it. */
  stalledMs: number;
};

export type Watch = {
  /** To be called every `sweepMs`: did bytes move since, and must it end? */
  look(nowMs: number): 'moved' | 'still' | { end: string };
  bytes(): { fromClient: number; fromBrowser: number };
};

/** Tells a connection in use from an idle one, and both from one that is stuck. */
export function createWatch(flow: Flow, limits: WatchLimits, startMs: number): Watch {
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

/** True where bytes have left us since the last look. */
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
