import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import {
  DEAF_AFTER_MS,
  followCredentials,
  type Credentials,
  type Hearing,
} from '#src/roles/api/auth/api-keys.ts';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';
import { defaultTiers } from '#src/kernel/domain/organization/tiers.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The credentials that a process holds in memory, and how they follow the events. */

useVirtualTime();

const HASH = hashKey('bss_acme_key');
const key = { keyId: 'key_1', hash: HASH, role: 'member', userId: 'ada' } as const;
const issue: OrganizationCommand = { type: 'IssueKey', key };
const revoke: OrganizationCommand = { type: 'RevokeKey', keyId: 'key_1' };

/** An event store with an organization, whose subscription may be disturbed. */
async function open(disturb: (eventStore: EventStore) => Partial<EventStore> = () => ({})) {
  const eventStore = createMemoryEventStore();
  const context = createCommandContext(eventStore, Date.now);
  const acme = { id: 'acme', name: 'Acme', tier: 'pro', credits: 0 } as const;
  await registerOrganization(context, acme, newMetadata('test'));
  async function decide(command: OrganizationCommand): Promise<number> {
    const handled = await handleCommand<'organization'>(
      context,
      { kind: 'organization', organizationId: 'acme' },
      (state) => decideOrganization(command, state),
      newMetadata('test'),
    );
    if (isRejection(handled)) throw new Error(JSON.stringify(handled));
    return handled.sequence;
  }
  const follow = (hearing: Hearing = { eventsSilenceMs: () => 0 }) =>
    followCredentials(
      { ...eventStore, ...disturb(eventStore) },
      defaultTiers,
      pino({ level: 'silent' }),
      hearing,
    );
  return { decide, follow };
}

/** The key's holder; 'refused' while keys cannot be looked up. */
function accessOf(credentials: Credentials) {
  try {
    return credentials.holderOf(HASH);
  } catch {
    return 'refused';
  }
}

describe('credentials', () => {
  it('are complete from the start, and follow each event', async () => {
    const { decide, follow } = await open();
    await decide(issue);
    await using credentials = await follow();
    const limits = defaultTiers.pro;
    const holder = { organizationId: 'acme', role: 'member', userId: 'ada', keyHash: HASH, limits };
    expect(credentials.holderOf(HASH)).toEqual(holder);
    expect(credentials.limitsOf('acme')).toEqual(limits);
    expect(credentials.limitsOf('umbrella')).toBeNull();

    await credentials.reached(await decide({ type: 'ChangeTier', tier: 'max' }));
    expect(credentials.holderOf(HASH)?.limits).toEqual(defaultTiers.max);
    await credentials.reached(await decide(revoke));
    expect(credentials.holderOf(HASH)).toBeNull();
  });

  it('are refused once the event store has been silent for 30 s, and again accepted after', async () => {
    const { decide, follow } = await open();
    await decide(issue);
    let silenceMs = DEAF_AFTER_MS;
    await using credentials = await follow({ eventsSilenceMs: () => silenceMs });
    expect(credentials.holderOf(HASH)).not.toBeNull();
    silenceMs += 1;
    expect(() => credentials.holderOf(HASH)).toThrow(Unavailable);
    // An unknown key may have been issued meanwhile: 503, not 401.
    expect(() => credentials.holderOf('0'.repeat(64))).toThrow(Unavailable);
    silenceMs = 0;
    expect(credentials.holderOf(HASH)).not.toBeNull();
  });

  it('are refused once organization events could not be followed for 30 s', async () => {
    let isRefused = false;
    const { decide, follow } = await open((eventStore) => ({
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options)) {
          if (isRefused) throw new Error('a permission is missing');
          yield batch;
        }
      },
    }));
    await decide(issue);
    let now = 0;
    await using credentials = await follow({ eventsSilenceMs: () => 0, now: () => now });
    isRefused = true;
    const sequence = await decide(revoke);
    await credentials.reached(sequence);
    now = DEAF_AFTER_MS + 1;
    expect(() => credentials.holderOf(HASH)).toThrow(Unavailable);
    isRefused = false;
    await eventually(() => accessOf(credentials) === null, 'it is refused');
  });

  it('are waited for at most a second', async () => {
    const { follow } = await open();
    await using credentials = await follow();
    await credentials.reached(1_000_000);
  });

  it('are available if the newest event cannot be read', async () => {
    const { decide, follow } = await open((eventStore) => ({
      lastSequence: async () => (await eventStore.lastSequence()) + 1,
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options)) {
          yield batch;
          const sequence = (await eventStore.lastSequence()) + 1;
          const [subject, reason] = ['evt.acme.organization.renamed', 'no such field'];
          options.onUnreadable({ sequence, subject, reason, kind: 'malformed' });
          options.onPosition?.(sequence);
        }
      },
    }));
    await decide(issue);
    await using credentials = await follow();
    expect(credentials.holderOf(HASH)).not.toBeNull();
  });

  it('are folded from the history if another version of the fold wrote the state', async () => {
    const { decide, follow } = await open((eventStore) => ({
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options))
          yield batch.map((event) => ({ ...event, state: null }) as never);
      },
    }));
    await decide(issue);
    await using credentials = await follow();
    expect(credentials.holderOf(HASH)).not.toBeNull();
    await credentials.reached(await decide(revoke));
    expect(credentials.holderOf(HASH)).toBeNull();
  });

  it('are followed again after an unexpected error: a revoked key does not stay valid', async () => {
    let isBroken = false;
    const { decide, follow } = await open((eventStore) => ({
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options)) {
          if (isBroken) {
            isBroken = false;
            throw new TypeError('a bug');
          }
          yield batch;
        }
      },
    }));
    await decide(issue);
    await using credentials = await follow();
    isBroken = true;
    await decide(revoke);
    await eventually(() => credentials.holderOf(HASH) === null, 'it is refused');
  });
});

describe('an organization', () => {
  it.each(['fired', '', 'a.b', '>', 'x'.repeat(65)])('cannot be registered as %j', async (id) => {
    const context = createCommandContext(createMemoryEventStore(), Date.now);
    const asked = { id, name: 'Acme', tier: 'pro', credits: 1 } as const;
    const outcome = await registerOrganization(context, asked, newMetadata('test'));
    expect(outcome).toMatchObject({ code: 'INVALID_REQUEST', context: { id } });
    expect(await context.eventStore.lastSequence()).toBe(0);
  });
});
