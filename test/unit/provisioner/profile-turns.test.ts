import { beforeEach, describe, expect, it } from 'vitest';
import type { EventStore } from '#src/event-store/event-store.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { ProfileOwner, ProfileVault } from '#src/profiles/profile-vault.ts';
import type { Pool } from '#src/provisioner/pool/pool.ts';
import type { PooledBrowser } from '#src/provisioner/pool/roster.ts';
import { createProfiles, type Profiles } from '#src/provisioner/profiles/profiles.ts';
import { saveAtEnd } from '#src/provisioner/profiles/save-profile.ts';

/** How many profiles a server saves at once. */

const METADATA = newMetadata('test');

let profiles: Profiles;
/** Saves under way, of each organization. */
let running: Map<string, number>;
/** The most that were under way together, of one organization and of all. */
let most: { ofOne: number; ofAll: number };

beforeEach(() => {
  const [eventStore, vault] = [{} as EventStore, {} as ProfileVault];
  profiles = createProfiles({ eventStore, vault, versionsKept: 3 });
  running = new Map();
  most = { ofOne: 0, ofAll: 0 };
});

/** Saves a profile, which takes a turn of the event loop. */
function save(organization: string, withinMs = 60_000): Promise<string | null> {
  return profiles.inTurn(organization, withinMs, async () => {
    running.set(organization, (running.get(organization) ?? 0) + 1);
    const all = [...running.values()].reduce((sum, count) => sum + count, 0);
    most = {
      ofOne: Math.max(most.ofOne, running.get(organization) ?? 0),
      ofAll: Math.max(most.ofAll, all),
    };
    await new Promise((resolve) => setImmediate(resolve));
    running.set(organization, (running.get(organization) ?? 0) - 1);
    return 'saved';
  });
}

/** Holds as many turns as an organization may have, until they are released. */
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

it('a profile that is stored takes no turn while the event store does not answer', async () => {
  const stored: string[] = [];
  const vault = {
    async save({ profileId }: ProfileOwner) {
      stored.push(profileId);
      return { sha256: '00', bytes: 1, contents: { origins: [], cookies: [] } };
    },
  } as unknown as ProfileVault;
  const eventStore = {} as EventStore;
  const never = new Promise<never>(() => undefined);
  const pool = {
    profiles: createProfiles({ eventStore, vault, versionsKept: 3 }),
    browsers: {
      close: async () => true,
      async *readProfile() {},
      build: () => ({ version: '1' }),
    },
    reporter: { profile: () => never },
  } as unknown as Pool;
  const ids = Array.from({ length: 10 }, (_, at) => `prf_${at}`);
  for (const id of ids) {
    const session = { organizationId: 'acme', id: `ses_of_${id}` };
    const profile = { organizationId: 'acme', sessionId: session.id, id, version: 0, save: true };
    const pooled = { workloadId: `wl_of_${id}`, session, options: { profile } };
    void saveAtEnd(pool, pooled as unknown as PooledBrowser, { isClosed: false }, METADATA);
  }
  await expect.poll(() => stored.toSorted()).toEqual(ids.toSorted());
});
