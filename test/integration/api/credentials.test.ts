import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { STATE_UNKNOWN } from '#events/codec.ts';
import { followCredentials } from '#src/api/auth/api-keys.ts';
import { isRejected } from '#src/errors.ts';
import { hashKey } from '#src/ids.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { handle } from '#src/commands/handle-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/domain/organization/organization.ts';
import { defaultTiers } from '#src/domain/organization/tiers.ts';
import { eventually } from '#test/support/service/service.ts';

/** What a process knows of keys, as it hears of them. */

const HASH = hashKey('bss_acme_key');
const key = { keyId: 'key_1', hash: HASH, role: 'member', userId: 'ada' } as const;
const issue: OrganizationCommand = { type: 'IssueKey', key };
const revoke: OrganizationCommand = { type: 'RevokeKey', keyId: 'key_1' };

/** A log with an organization, whose follower may be disturbed. */
async function open(disturb: (log: EventLog) => Partial<EventLog> = () => ({})) {
  const log = createMemoryEventLog();
  const desk = { log, now: Date.now };
  const acme = { id: 'acme', name: 'Acme', tier: 'pro', credits: 0 } as const;
  await registerOrganization(desk, acme, causeBy('test'));
  async function decide(command: OrganizationCommand): Promise<number> {
    const handled = await handle<'organization'>(
      desk,
      { kind: 'organization', organizationId: 'acme' },
      (state) => decideOrganization(command, state),
      causeBy('test'),
    );
    if (isRejected(handled)) throw new Error(JSON.stringify(handled));
    return handled.sequence;
  }
  const follow = () =>
    followCredentials({ ...log, ...disturb(log) }, defaultTiers, pino({ level: 'silent' }));
  return { decide, follow };
}

describe('credentials', () => {
  it('are all there from the start, and follow each event', async () => {
    const { decide, follow } = await open();
    await decide(issue);
    await using credentials = await follow();
    const limits = defaultTiers.pro;
    const holder = { organizationId: 'acme', role: 'member', userId: 'ada', limits };
    expect(credentials.holderOf(HASH)).toEqual(holder);
    expect(credentials.limitsOf('acme')).toEqual(limits);
    expect(credentials.limitsOf('umbrella')).toBeNull();

    await credentials.reached(await decide({ type: 'ChangeTier', tier: 'max' }));
    expect(credentials.holderOf(HASH)?.limits).toEqual(defaultTiers.max);
    await credentials.reached(await decide(revoke));
    expect(credentials.holderOf(HASH)).toBeNull();
  });

  it('are not waited for longer than a second', async () => {
    const { follow } = await open();
    await using credentials = await follow();
    await credentials.reached(1_000_000);
  });

  it('are there where the newest event cannot be read', async () => {
    const { decide, follow } = await open((log) => ({
      lastSequence: async (subjects) => (await log.lastSequence(subjects)) + 1,
      async *follow(options) {
        let isTold = false;
        for await (const batch of log.follow(options)) {
          yield batch;
          const [subject, reason] = ['evt.acme.organization.renamed', 'of tomorrow'];
          if (!isTold) options.onMalformed({ sequence: 1_000, subject, reason });
          isTold = true;
        }
      },
    }));
    await decide(issue);
    await using credentials = await follow();
    expect(credentials.holderOf(HASH)).not.toBeNull();
  });

  it('are folded where another version of the fold wrote them', async () => {
    const { decide, follow } = await open((log) => ({
      async *follow(options) {
        for await (const batch of log.follow(options))
          yield batch.map((event) => ({ ...event, state: STATE_UNKNOWN }) as never);
      },
    }));
    await decide(issue);
    await using credentials = await follow();
    expect(credentials.holderOf(HASH)).not.toBeNull();
    await credentials.reached(await decide(revoke));
    expect(credentials.holderOf(HASH)).toBeNull();
  });

  it('are followed on after a bug: a revoked key does not live for ever', async () => {
    let isBroken = false;
    const { decide, follow } = await open((log) => ({
      async *follow(options) {
        for await (const batch of log.follow(options)) {
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
    await eventually(() => credentials.holderOf(HASH) === null, 'it is refused', 5_000);
  });
});

describe('an organization', () => {
  it.each(['fired', '', 'a.b', '>', 'x'.repeat(65)])('cannot be registered as %j', async (id) => {
    const desk = { log: createMemoryEventLog(), now: Date.now };
    const asked = { id, name: 'Acme', tier: 'pro', credits: 1 } as const;
    const outcome = await registerOrganization(desk, asked, causeBy('test'));
    expect(outcome).toMatchObject({ rejected: 'INVALID_REQUEST', context: { id } });
    expect(await desk.log.lastSequence()).toBe(0);
  });
});
