import { createPlaces, type NoPlace } from '#src/kernel/async/places.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { McpSessions } from '#src/kernel/messaging/mcp-sessions.ts';

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
  const places = createPlaces({ max, perOwner: perOrganization });
  /** The places of the sessions that were begun. */
  const kept = new Map<string, Disposable>();
  let looking: Promise<void> | null = null;
  let lookedAt = -Infinity;

  function free(id: string): void {
    kept.get(id)?.[Symbol.dispose]();
    kept.delete(id);
  }
  async function look(): Promise<void> {
    // One that is stored while the store is read may be missing in what was read.
    const before = [...kept.keys()];
    const goOn = new Set(
      (await sessions.all()).filter(({ ended }) => ended === null).map(({ id }) => id),
    );
    for (const id of before) if (!goOn.has(id)) free(id);
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
      let taken = places.take(organizationId);
      if ('refused' in taken) {
        await lookAgain();
        taken = places.take(organizationId);
      }
      if ('refused' in taken) return full(taken);
      const place = taken;
      let isKept = false;
      return {
        keep(id) {
          isKept = true;
          kept.set(id, place);
        },
        [Symbol.dispose]() {
          if (!isKept) place[Symbol.dispose]();
        },
      };
    },
    free,
  };
}

function full({ refused, limit }: NoPlace): Rejection {
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  if (refused === 'owner') return reject('MCP_SESSION_LIMIT_EXCEEDED', { limit }, retry);
  const message = 'This process has as many MCP sessions as it can; try again.';
  return reject('UNAVAILABLE', { part: 'mcp-sessions' }, { ...retry, message });
}
