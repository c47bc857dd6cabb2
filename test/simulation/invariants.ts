import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { createLedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { Answer, Organization } from './clients.ts';
import { forgottenRequests } from './forgotten-requests.ts';
import type { Host } from './host.ts';

/** What a simulation leaves behind, from which the invariants are judged. */
export type Facts = {
  log: readonly RecordedEvent[];
  /** When each event was stored, by the simulation's clock: its own time may be wrong. */
  storedAt: readonly number[];
  organizations: readonly Organization[];
  answers: readonly Answer[];
  hosts: readonly Host[];
  /** When the troubles had ended, by the simulation's clock. */
  healedAt: number;
  /** Errors that nothing handled. */
  failures: readonly unknown[];
  /** Where the read model differs from the log. */
  differences: readonly string[];
};

type Invariant = { name: string; breaches: (facts: Facts) => string[] };

/** What has to hold in every simulation, whatever goes wrong. */
export const invariants: readonly Invariant[] = [
  { name: 'no slot or credit is lost or doubled', breaches: ledgerDifferences },
  { name: 'no organization has more sessions than it may', breaches: sessionsBeyondLimits },
  { name: 'every session ends, once', breaches: sessionsWithoutEnd },
  { name: 'no browser serves two sessions', breaches: sharedBrowsers },
  { name: 'every browser ends, and none is left', breaches: browsersLeft },
  { name: 'what was acknowledged is in the log', breaches: lostAnswers },
  { name: 'a repeated request has one effect', breaches: doubledRequests },
  { name: 'a refused command leaves nothing', breaches: refusedEffects },
  { name: 'no request is forgotten while there is room', breaches: forgottenRequests },
  { name: 'the read model is a fold of the log', breaches: ({ differences }) => [...differences] },
  { name: 'no error is left unhandled', breaches: ({ failures }) => failures.map(String) },
];

/** One sentence for each breach, beginning with the invariant. */
export function breaches(facts: Facts): string[] {
  return invariants.flatMap(({ name, breaches: find }) =>
    find(facts).map((found) => `${name}: ${found}`),
  );
}

function sessionEvents(log: readonly RecordedEvent[]): RecordedOf<'session'>[] {
  return log.filter((event) => isOf('session', event));
}

function lastStates(log: readonly RecordedEvent[]): Map<string, SessionState> {
  const states = new Map<string, SessionState>();
  for (const { aggregate, state } of sessionEvents(log))
    if (state !== null) states.set(aggregate.id, state);
  return states;
}

function ledgerDifferences({ log, organizations }: Facts): string[] {
  const audit = createLedgerAudit();
  for (const event of log) audit.take(event);
  return audit.report().flatMap(({ organizationId, ledger, differences }) => {
    const { credits } = organizations.find(({ id }) => id === organizationId) ?? { credits: 0 };
    const sum = ledger.creditsAvailable + ledger.creditsReserved + ledger.creditsUsed;
    return [
      ...differences.map((one) => `${organizationId}: ${one}`),
      ...(sum === credits ? [] : [`${organizationId}: of ${credits} credits there are ${sum}`]),
      ...(ledger.slotsInUse === 0 ? [] : [`${organizationId}: ${ledger.slotsInUse} slots in use`]),
      ...(ledger.creditsReserved === 0 ? [] : [`${organizationId}: credits are still reserved`]),
    ];
  });
}

/** Counted by the sessions' own events, after each of them. */
function sessionsBeyondLimits({ log, organizations }: Facts): string[] {
  const found: string[] = [];
  const open = new Map<string, number>();
  for (const { sequence, type, aggregate } of sessionEvents(log)) {
    const { organizationId } = aggregate;
    const isEnd = type === 'session.stopped' || type === 'session.failed';
    const change = type === 'session.requested' ? 1 : isEnd ? -1 : 0;
    const count = (open.get(organizationId) ?? 0) + change;
    open.set(organizationId, count);
    const limit = organizations.find(({ id }) => id === organizationId)?.concurrentSessions ?? 0;
    if (change > 0 && count > limit)
      found.push(`${organizationId} has ${count} sessions at ${sequence}, and may have ${limit}`);
  }
  return found;
}

function sessionsWithoutEnd({ log }: Facts): string[] {
  const ends = new Map<string, number>();
  for (const { aggregate, type } of sessionEvents(log))
    if (type === 'session.stopped' || type === 'session.failed')
      ends.set(aggregate.id, (ends.get(aggregate.id) ?? 0) + 1);
  return [...lastStates(log)].flatMap(([id, { status, endedReason }]) => {
    const count = ends.get(id) ?? 0;
    if (count === 1 && isFinal(status) && endedReason !== null) return [];
    return [`${id} is ${status} and has ${count} ends, reason ${endedReason}`];
  });
}

/** Neither by the sessions' events nor by the browsers' own. */
function sharedBrowsers({ log, hosts }: Facts): string[] {
  const found = hosts.flatMap(({ relabelled }) =>
    relabelled.map((id) => `${id} was labelled for two sessions`),
  );
  const sessionOf = new Map<string, string>();
  const claim = (workloadId: string, sessionId: string, at: number) => {
    const before = sessionOf.get(workloadId);
    sessionOf.set(workloadId, sessionId);
    if (before !== undefined && before !== sessionId)
      found.push(`${workloadId} had ${before} and at ${at} got ${sessionId}`);
  };
  const activated = new Set<string>();
  for (const event of log) {
    const { sequence } = event;
    if (event.type === 'workload.assigned' && isOf('workload', event))
      claim(event.aggregate.id, event.data.sessionId, sequence);
    if (event.type !== 'session.activated' || !isOf('session', event)) continue;
    const { id } = event.aggregate;
    claim(event.data.workload.workloadId, id, sequence);
    if (activated.has(id)) found.push(`${id} got a second browser at ${sequence}`);
    activated.add(id);
  }
  return found;
}

/** At the end all servers have been stopped; those of containers leave the idle ones to adopt. */
function browsersLeft({ log, hosts }: Facts): string[] {
  const open = new Map<string, string>();
  const found: string[] = [];
  for (const event of log) {
    if (!isOf('workload', event)) continue;
    const { id } = event.aggregate;
    if (event.type === 'workload.terminated') {
      if (!open.delete(id)) found.push(`${id} was terminated twice`);
    } else open.set(id, event.state?.status ?? 'unknown');
  }
  const leaving = new Set(hosts.flatMap((host) => (host.hasContainers ? host.running() : [])));
  for (const [id, status] of open)
    if (status !== 'idle' || !leaving.has(id)) found.push(`${id} is left, ${status} in the log`);
  for (const id of hosts.flatMap((host) => host.ids()))
    if (!open.has(id)) found.push(`the browser of ${id} is left, and its end is in the log`);
  return found;
}

function lostAnswers({ log, answers }: Facts): string[] {
  const events = sessionEvents(log);
  const has = (sessionId: string, is: (event: RecordedOf<'session'>) => boolean) =>
    events.some((event) => event.aggregate.id === sessionId && is(event));
  return answers.flatMap((answer) => {
    if (answer.to === 'refused') return [];
    const { to, sessionId } = answer;
    const isThere = has(sessionId, (event) => {
      if (to === 'create') return event.type === 'session.requested';
      if (to === 'stop') return event.type === 'session.stop-requested' || hasFailed(event);
      if (event.type !== 'session.extended') return false;
      const isKeyed = event.data.repeatable?.key === answer.key && answer.key !== null;
      return event.metadata.commandId === answer.commandId || isKeyed;
    });
    return isThere ? [] : [`${to} of ${sessionId} was acknowledged, and the log does not have it`];
  });
}

function hasFailed({ type }: RecordedEvent): boolean {
  return type === 'session.failed';
}

function doubledRequests({ log }: Facts): string[] {
  const seen = new Set<string>();
  return sessionEvents(log).flatMap((event) => {
    const { id } = event.aggregate;
    const marks = [`command ${event.metadata.commandId} appended ${event.type} to ${id}`];
    if (event.type === 'session.requested') marks.push(`${id} was requested`);
    if (event.type === 'session.extended' && event.data.repeatable !== undefined)
      marks.push(`${id} was extended with the key ${event.data.repeatable.key}`);
    const doubled = marks.filter((mark) => seen.has(mark));
    for (const mark of marks) seen.add(mark);
    return doubled.map((mark) => `${mark}, at ${event.sequence} again`);
  });
}

function refusedEffects({ log, answers }: Facts): string[] {
  const traces = new Map(log.map(({ metadata, sequence }) => [metadata.commandId, sequence]));
  for (const { type, aggregate, sequence } of sessionEvents(log))
    if (type === 'session.requested') traces.set(aggregate.id, sequence);
  return answers.flatMap((answer) => {
    if (answer.to !== 'refused') return [];
    const sequence = traces.get(answer.commandId) ?? traces.get(answer.sessionId ?? '');
    return sequence === undefined
      ? []
      : [`${answer.code} was answered; event ${sequence} is there`];
  });
}
