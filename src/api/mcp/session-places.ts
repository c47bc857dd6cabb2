import { reject, type Rejection } from '#src/errors.ts';
import type { McpSessions } from '#src/messaging/mcp-sessions.ts';

/** MCP sessions that go on and were begun in this process, of an organization and of all. */
export const SESSIONS_PER_ORGANIZATION_MAX = 200;
const SESSIONS_MAX = 1_000;
/** Between two looks at which sessions go on; one reads all of the store. */
const LOOK_EVERY_MS = 2_000;
const RETRY_AFTER_SECONDS = 10;

/** A session that is being begun. Disposing gives its place back, unless it has been kept. */
export type Place = { keep(id: string): void } & Disposable;

export type SessionPlaces = {
  /**
   * Takes a place at once, or says why there is none.
   * @throws Unavailable where all places are taken and the store cannot say by what
   */
  take(organizationId: string): Promise<Place | Rejection>;
  /** The session has ended. */
  free(id: string): void;
};

type Taken = { organizationId: string; id: string | null };

/**
 * Bounds the MCP sessions that this process begins. One that ended elsewhere keeps its place until
 * places are short: then the store is asked which sessions go on, every 2 s at most.
 */
export function createSessionPlaces(
  sessions: Pick<McpSessions, 'all'>,
  {
    perOrganization = SESSIONS_PER_ORGANIZATION_MAX,
    max = SESSIONS_MAX,
    lookEveryMs = LOOK_EVERY_MS,
  } = {},
): SessionPlaces {
  const places = new Set<Taken>();
  let looking: Promise<void> | null = null;
  let lookedAt = -Infinity;

  function fullFor(organizationId: string): Rejection | null {
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    const own = [...places].filter((one) => one.organizationId === organizationId);
    if (own.length >= perOrganization)
      return reject('MCP_SESSION_LIMIT_EXCEEDED', { limit: perOrganization }, retry);
    if (places.size < max) return null;
    const message = 'This process has as many MCP sessions as it can; try again.';
    return reject('UNAVAILABLE', { part: 'mcp-sessions' }, { ...retry, message });
  }
  async function look(): Promise<void> {
    // One that is stored while the store is read may be missing in what was read.
    const before = [...places].filter(({ id }) => id !== null);
    const goOn = new Set(
      (await sessions.all()).filter(({ ended }) => ended === null).map(({ id }) => id),
    );
    for (const place of before) if (!goOn.has(String(place.id))) places.delete(place);
  }
  async function lookAgain(): Promise<void> {
    if (looking === null && performance.now() - lookedAt < lookEveryMs) return;
    looking ??= look().finally(() => {
      looking = null;
      lookedAt = performance.now();
    });
    await looking;
  }
  return {
    async take(organizationId) {
      if (fullFor(organizationId) !== null) await lookAgain();
      const full = fullFor(organizationId);
      if (full !== null) return full;
      const place: Taken = { organizationId, id: null };
      places.add(place);
      return {
        keep: (id) => void (place.id = id),
        [Symbol.dispose]() {
          if (place.id === null) places.delete(place);
        },
      };
    },
    free(id) {
      for (const place of places) if (place.id === id) places.delete(place);
    },
  };
}
