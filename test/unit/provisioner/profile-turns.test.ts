import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { nextTurn } from '#src/kernel/async/sleep.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { ProfileOwner, ProfileVault } from '#src/features/profiles/profile-vault.ts';
import type { PooledBrowser } from '#src/roles/provisioner/pool/roster.ts';
import { createProfiles, type ServerProfiles } from '#src/features/profiles/server/profiles.ts';
import { saveAtEnd, saveNow, type SaveParts } from '#src/features/profiles/server/save-profile.ts';

/** How many profiles a server saves at once, and what becomes of those that are not saved. */

const METADATA = newMetadata('test');

let profiles: ServerProfiles;
/** The profiles that were stored. */
let stored: string[];
/** Saves under way, of each organization. */
let running: Map<string, number>;
/** The most that were under way together, of one organization and of all. */
let most: { ofOne: number; ofAll: number };

beforeEach(() => {
  stored = [];
  const vault = {
    async save({ profileId }: ProfileOwner) {
      stored.push(profileId);
      return { sha256: '00', bytes: 1, contents: { origins: [], cookies: [] } };
    },
  } as unknown as ProfileVault;
  profiles = createProfiles({
    ...{ eventStore: {} as EventStore, vault, versionsKept: 3 },
    onNotSealed: (error) => {
      throw error;
    },
  });
  running = new Map();
  most = { ofOne: 0, ofAll: 0 };
});

/** Saves a profile: others can go on before it is saved. */
function save(organization: string, withinMs = 60_000): Promise<string | null> {
  return profiles.inTurn(organization, withinMs, async () => {
    running.set(organization, (running.get(organization) ?? 0) + 1);
    const all = [...running.values()].reduce((sum, count) => sum + count, 0);
    most = {
      ofOne: Math.max(most.ofOne, running.get(organization) ?? 0),
      ofAll: Math.max(most.ofAll, all),
    };
    await nextTurn();
    running.set(organization, (running.get(organization) ?? 0) - 1);
    return 'saved';
  });
}

/** Holds that many turns of the organization, until they are released. */
async function occupy(organization: string, count: number) {
  const release = Promise.withResolvers<void>();
  const begun = Array.from({ length: count }, () => Promise.withResolvers<void>());
  const held = begun.map(({ resolve }) =>
    profiles.inTurn(organization, 60_000, async () => {
      resolve();
      await release.promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  return async () => {
    release.resolve();
    await Promise.all(held);
  };
}

describe('of a thousand profiles that are saved at once', () => {
  it('three of one organization are under way, and all are saved', async () => {
    const saved = await Promise.all(Array.from({ length: 1_000 }, () => save('acme')));
    expect(new Set(saved)).toEqual(new Set(['saved']));
    expect(most).toEqual({ ofOne: 3, ofAll: 3 });
  });

  it('four of a server are under way, and all are saved', async () => {
    const organizations = ['acme', 'bolt', 'cube', 'dune'];
    const saved = await Promise.all(
      Array.from({ length: 1_000 }, (_, at) => save(organizations[at % 4] ?? '')),
    );
    expect(new Set(saved)).toEqual(new Set(['saved']));
    expect(most.ofAll).toBe(4);
  });
});

describe('a save whose turn does not come', () => {
  it('is given up, and takes no turn from another', async () => {
    const release = await occupy('acme', 3);
    expect(await save('acme', 1)).toBeNull();
    expect(most.ofAll).toBe(0);
    await release();
    expect(await Promise.all([1, 2, 3].map(() => save('acme')))).toEqual(Array(3).fill('saved'));
    expect(most.ofOne).toBe(3);
  });

  it('does not hold up those of another organization', async () => {
    const release = await occupy('acme', 3);
    const waiting = save('acme');
    expect(await save('bolt')).toBe('saved');
    await release();
    expect(await waiting).toBe('saved');
  });
});

it('a save that fails gives its turn back', async () => {
  for (let time = 1; time <= 5; time += 1)
    await expect(
      profiles.inTurn('acme', 60_000, () => Promise.reject(new Error('the disk is full'))),
    ).rejects.toThrow('the disk is full');
  expect(await save('acme')).toBe('saved');
});

/** Saves the profile of a session, at its end or while it goes on. */
type Save = (pool: SaveParts, pooled: PooledBrowser) => Promise<void>;
const atEnd: Save = (pool, pooled) => saveAtEnd(pool, pooled, { isClosed: false }, METADATA);
const onRequest: Save = (pool, pooled) => saveNow(pool, pooled, METADATA);

const isAway = () => Promise.reject(new Error('the event store is away'));

/** A server whose browsers are closed, or are not. @returns also what it reports of sessions */
function server({ isClosed = true, record = isAway } = {}) {
  const reported: unknown[] = [];
  const pool = {
    profiles,
    browsers: {
      close: async () => isClosed,
      async *readProfile() {},
      build: () => ({ version: '1' }),
    },
    reporter: {
      profile: record,
      session: async (_: unknown, command: unknown) => void reported.push(command),
    },
    log: pino({ level: 'silent' }),
  } as unknown as SaveParts;
  return { pool, reported };
}

/** The browser of a session that is to save its profile. */
function browserOf(id: string, port = 0): PooledBrowser {
  const session = { organizationId: 'acme', id: `ses_of_${id}` };
  const profile = { organizationId: 'acme', sessionId: session.id, id, version: 0, save: true };
  const browser = { cdp: { host: '127.0.0.1', port, path: '/' } };
  const pooled = { workloadId: `wl_of_${id}`, session, browser, options: { profile } };
  return pooled as unknown as PooledBrowser;
}

it('a profile whose browser is not closed at the end is not stored, which is reported', async () => {
  const { pool, reported } = server({ isClosed: false });
  await atEnd(pool, browserOf('prf_1'));
  expect(stored).toEqual([]);
  const outcome = { reason: 'not_closed', detail: 'the browser was not closed within 20 s' };
  expect(reported).toEqual([{ type: 'ReportProfile', outcome, atEnd: true }]);
});

it.each([
  { when: 'at the end of its session', save: atEnd, seconds: 60, isEnd: true },
  { when: 'while its session goes on', save: onRequest, seconds: 10, isEnd: false },
])(
  'a profile whose turn does not come $when is not stored, which is reported after $seconds s',
  async ({ save: saveOne, seconds, isEnd }) => {
    const release = await occupy('acme', 3);
    const { pool, reported } = server();
    const late = new AbortController();
    using limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
    const saving = saveOne(pool, browserOf('prf_1'));
    // What another file of this process has left may ask for time limits of its own.
    const asked = () => limit.mock.calls.filter(([ms]) => ms === seconds * 1_000);
    await expect.poll(asked).toHaveLength(1);
    expect([stored, reported]).toEqual([[], []]);
    late.abort();
    await saving;
    expect(stored).toEqual([]);
    const outcome = { reason: 'storage', detail: `others were being saved for ${seconds} s` };
    expect(reported).toEqual([{ type: 'ReportProfile', outcome, atEnd: isEnd }]);
    await release();
  },
);

it.each([
  { when: 'at the end of its session', save: atEnd },
  { when: 'while its session goes on', save: onRequest },
])(
  'a profile that is stored $when takes no turn while the event store does not answer',
  async ({ save: saveOne }) => {
    await using browser = await startEmptyBrowser();
    const { pool } = server({ record: () => new Promise<never>(() => undefined) });
    const ids = Array.from({ length: 10 }, (_, at) => `prf_${at}`);
    for (const id of ids) void saveOne(pool, browserOf(id, browser.port));
    await expect.poll(() => stored.toSorted()).toEqual(ids.toSorted());
  },
);

/** Answers over CDP as a browser without cookies and pages does. */
async function startEmptyBrowser() {
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  sockets.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => {
      const { id } = JSON.parse(data.toString()) as { id: number };
      socket.send(JSON.stringify({ id, result: { cookies: [], targetInfos: [] } }));
    }),
  );
  await once(sockets, 'listening');
  return {
    port: (sockets.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate();
      await new Promise((closed) => sockets.close(closed));
    },
  };
}
