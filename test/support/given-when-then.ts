import { expect } from 'vitest';
import { encode } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { isRejection, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { decideServer, type ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { decideWorkload, type WorkloadCommand } from '#src/kernel/domain/fleet/workload.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import {
  decideLedger,
  emptyLedger,
  type LedgerCommand,
} from '#src/kernel/domain/organization/ledger.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';
import { decideProfile, type ProfileCommand } from '#src/kernel/domain/profile/profile.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';

const organizationId = 'org_acme';

/** The session of the specifications; its events have this subject. */
export const sessionRef = { kind: 'session', organizationId, id: 'ses_1' } as const;

export const session = specification<'session', SessionCommand>(sessionRef, decide);
export const ledger = specification<'ledger', LedgerCommand>(
  { kind: 'ledger', organizationId },
  (command, state) => decideLedger(command, state ?? emptyLedger),
);
export const organization = specification<'organization', OrganizationCommand>(
  { kind: 'organization', organizationId },
  decideOrganization,
);
export const profile = specification<'profile', ProfileCommand>(
  { kind: 'profile', organizationId, id: 'prf_1' },
  (command, state) => decideProfile(command, state, 'prf_1'),
);
export const workload = specification<'workload', WorkloadCommand>(
  { kind: 'workload', id: 'wl_1' },
  decideWorkload,
);
export const server = specification<'server', ServerCommand>(
  { kind: 'server', id: 'srv_1' },
  decideServer,
);

/**
 * `given(events…).when(command).then(events…)` for one kind of aggregate. Each event, given or
 * decided, is folded and encoded on the way, so that the event and the state after it are valid.
 */
export function specification<Kind extends AggregateKind, Command>(
  aggregate: RefOf<Kind>,
  decideOn: (
    command: Command,
    state: Aggregates[Kind]['state'] | null,
  ) => Aggregates[Kind]['event'][] | Rejection,
) {
  type Event = Aggregates[Kind]['event'];
  type State = Aggregates[Kind]['state'];

  function given(...history: Event[]) {
    const before = foldAll(aggregate, null, history);
    return {
      when: (command: Command) => {
        const outcome = decideOn(command, before);
        if (!isRejection(outcome)) foldAll(aggregate, before, outcome);
        return outcomeOf(outcome);
      },
      /** The state after the given events has at least these fields. */
      stateIs: (expected: Partial<State>) => expect(before).toMatchObject(expected),
    };
  }
  return { given };
}

/**
 * The state after the events. @throws MalformedEvent where one of them does not fit the contract.
 */
export function foldAll<Kind extends AggregateKind>(
  aggregate: RefOf<Kind>,
  before: Aggregates[Kind]['state'] | null,
  events: readonly Aggregates[Kind]['event'][],
): Aggregates[Kind]['state'] | null {
  return events.reduce<Aggregates[Kind]['state'] | null>((state, event) => {
    const after = evolve<Kind>(aggregate, state, event);
    encode({ aggregate, ...event, ...envelope, state: after });
    return after;
  }, before);
}

const envelope = {
  id: 'evt_1',
  time: '2026-03-01T12:00:00.000Z',
  metadata: {
    actor: { kind: 'service', id: 'test' },
    commandId: 'cmd_1',
    correlationId: 'cor_1',
    causationId: null,
  },
} as const;

function outcomeOf<Event>(outcome: Event[] | Rejection) {
  function thenEvents(...expected: Event[]): void {
    expect(outcome).toEqual(expected);
  }
  function thenRejected(name: ErrorName, context?: Record<string, unknown>): void {
    expect(outcome).toMatchObject({ code: name });
    if (context !== undefined) expect(outcome).toHaveProperty('context', context);
  }
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- the pattern's own word; never awaited.
    then: thenEvents,
    thenNothing: () => expect(outcome).toEqual([]),
    thenRejected,
  };
}
