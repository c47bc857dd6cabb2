import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OrganizationCommand } from '#src/kernel/domain/organization/organization.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { followKeys } from '#src/roles/gateway/access/key-lookup.ts';
import { holderOf } from '#src/roles/gateway/access/ticket.ts';
import { T0 } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';

const ADA = 'ad'.repeat(32);
const BOB = 'b0'.repeat(32);
const log = { debug() {}, info() {}, warn() {}, error: () => onError() };

let stored: EventStore;
let reads: number;
let isAway: boolean;
let isReceiving: boolean;
let eventStore: EventStore;
let subscribe: EventStore['subscribe'];
let onError: () => void;

beforeEach(async () => {
  stored = createMemoryEventStore();
  [reads, isAway, isReceiving] = [0, false, true];
  subscribe = (options) => stored.subscribe(options);
  onError = () => {};
  eventStore = {
    ...stored,
    subscribe: (options) => subscribe(options),
    readLast: (...asked) => {
      reads += 1;
      if (isAway) return Promise.reject(new Unavailable('event-log'));
      expect(asked[1]).toEqual({ fromLeader: true });
      return stored.readLast(...asked);
    },
  };
  const acme = { id: 'acme', name: 'Acme', tier: 'max', credits: 10_000 } as const;
  await registerOrganization(contextOf(), acme, newMetadata('test'));
  await issue('key_ada', ADA);
});
afterEach(() => expect(reads).toBeLessThan(10));

const contextOf = () => createCommandContext(stored, () => T0);
const follow = () =>
  followKeys(eventStore, {
    reception: { isConnected: () => isReceiving, eventsSilenceMs: () => 0 },
    log,
  });

async function tell(command: OrganizationCommand): Promise<void> {
  const organization = { kind: 'organization', organizationId: 'acme' } as const;
  const handled = await handleCommand<'organization'>(
    contextOf(),
    organization,
    (state) => decideOrganization(command, state),
    newMetadata('test'),
  );
  expect(handled).toHaveProperty('isChanged', true);
}
function issue(keyId: string, hash: string): Promise<void> {
  return tell({ type: 'IssueKey', key: { keyId, hash, role: 'member', userId: 'ada' } });
}
const revoke = (keyId: string) => tell({ type: 'RevokeKey', keyId });

describe('the gateway’s key directory', () => {
  it('reads an organization once, and is kept current by its events', async () => {
    await using keys = await follow();
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
    expect(reads).toBe(1);
    const revoked = closedBy(keys);
    await revoke('key_ada');
    await eventually(() => revoked.length > 0, 'the revocation has arrived');
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(false);
  });

  it('tells which keys are live after each event of the organization', async () => {
    await using keys = await follow();
    const told = closedBy(keys);
    await issue('key_bob', BOB);
    await revoke('key_ada');
    await eventually(() => told.length >= 2, 'both events have arrived');
    expect(told).toEqual([
      ['acme', [holderOf(ADA), holderOf(BOB)]],
      ['acme', [holderOf(BOB)]],
    ]);
  });

  it('asks the leader for a key that it does not know, which may be new', async () => {
    await using keys = await follow();
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(false);
    await issue('key_bob', BOB);
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(true);
    expect(await keys.isLive('umbrella', holderOf(BOB))).toBe(false);
  });

  it('a key that was replaced under the same id is another key', async () => {
    await using keys = await follow();
    await revoke('key_ada');
    await issue('key_ada', BOB);
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(false);
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(true);
  });

  it('given an event that is older than what the leader told, it tells the newer keys', async () => {
    const lag = Promise.withResolvers<undefined>();
    subscribe = async function* (options) {
      await lag.promise;
      yield* stored.subscribe(options);
    };
    await using keys = await follow();
    const told = closedBy(keys);
    await revoke('key_ada');
    await issue('key_bob', BOB);
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(true);
    lag.resolve(undefined);
    await eventually(() => told.length >= 2, 'both events have arrived');
    expect(told).toEqual([
      ['acme', [holderOf(BOB)]],
      ['acme', [holderOf(BOB)]],
    ]);
  });

  it('trusts what it remembers only while it receives events', async () => {
    await using keys = await follow();
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
    isReceiving = false;
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
    expect(reads).toBe(2);
    isAway = true;
    await expect(keys.isLive('acme', holderOf(ADA))).rejects.toThrow(Unavailable);
    isReceiving = true;
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
  });

  it('asks the leader while its own reader fails, and trusts itself once that goes on', async () => {
    let fails = true;
    subscribe = (options) => {
      if (fails) throw new Error('this reader cannot read');
      return stored.subscribe(options);
    };
    const failed = Promise.withResolvers<undefined>();
    onError = () => failed.resolve(undefined);
    await using keys = await follow();
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(true);
    await failed.promise;
    await revoke('key_ada');
    expect(await keys.isLive('acme', holderOf(ADA))).toBe(false);

    await issue('key_bob', BOB);
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(true);
    const told = closedBy(keys);
    fails = false;
    await eventually(() => told.length >= 2, 'the reader goes on');
    isAway = true;
    expect(await keys.isLive('acme', holderOf(BOB))).toBe(true);
  });
});

/** What the directory tells a gateway. */
function closedBy(keys: Awaited<ReturnType<typeof follow>>): [string, string[]][] {
  const told: [string, string[]][] = [];
  keys.closeWhenRevoked({
    closeRevoked: (organizationId, holders) => told.push([organizationId, [...holders]]),
  });
  return told;
}
