import { createHash } from 'node:crypto';
import { type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { encode } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { LedgerEvent, LedgerState } from '#events/ledger.ts';
import type { ApiKey, Tier } from '#events/organization.ts';
import type { SessionState } from '#events/session.ts';
import { EVENTS_STREAM, filters, type AggregateKind } from '#events/subjects.ts';
import type { WorkloadState } from '#events/workload.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { decideWorkload, type WorkloadCommand } from '#src/kernel/domain/fleet/workload.ts';
import {
  decideLedger,
  emptyLedger,
  evolveLedger,
  ledgerCommandFor,
} from '#src/kernel/domain/organization/ledger.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { browser, createSession, iso, MINUTE, SECOND, T0 } from '../examples.ts';

/**
 * Generates the events of very many ended sessions, their ledgers and browsers: the event store of
 * a service that has run for long. One life is decided and folded by the domain's own code and
 * encoded by the codec; each generated life is a copy of these texts with ids and times of its own.
 * Ledgers are folded for every event. After them the service continues with these organizations.
 */
export type EndedSessions = {
  sessions: number;
  /** The sessions are spread over these evenly. */
  organizations: readonly KnownOrganization[];
  /**
   * When a session ended (ms since the epoch), by its number. It is in the events; the time that
   * the event store keeps beside each is that of its own clock.
   */
  endedAt: (session: number) => number;
};

/** An organization that the events register, with its only API key. */
export type KnownOrganization = { id: string; tier: Tier; apiKey: string };

/** An event as it is published; `headers` are lines that each end with a line break. */
export type EncodedEvent = { subject: string; headers: string; body: string };

/** Events of one session with its browser and its ledger. */
export const EVENTS_PER_SESSION = 13;
const CREDITS = 1_000_000_000;
const SERVER = 'srv_of-ended-sessions';

/** Placeholders of the one life; each generated life has its own. */
const SESSION = 'SESSION-of-a-life';
const WORKLOAD = 'WORKLOAD-of-a-life';
const ORGANIZATION = 'ORGANIZATION-of-a-life';
const ROOT = 'ROOT-of-a-life';
const LEDGER = '"LEDGER-of-a-life"';
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const PLACEHOLDER = new RegExp(
  `(${SESSION}|${WORKLOAD}|${ORGANIZATION}|${ROOT}|${LEDGER}|${TIME})`,
);

const ENDED_AT = T0 + 5 * MINUTE;

type Life = { values: Record<string, string>; endedAt: number };
/** A text of the life: literals, and functions that return what stands between them. */
type Text = readonly (string | ((life: Life) => string))[];
/** `ledger`: the event of the ledger, to be folded into the state that the body carries. */
type Template = { subject: Text; headers: Text; body: Text; ledger: LedgerEvent | null };

/** The commands of the life, with their times: a warm browser, used for five minutes. */
const steps: readonly { at: number; command: SessionCommand | WorkloadCommand }[] = [
  { at: T0 - MINUTE, command: { type: 'Provision', serverId: SERVER } },
  { at: T0 - MINUTE + 5, command: { type: 'Launch' } },
  { at: T0 - MINUTE + 400, command: { type: 'ReportIdle', launchMs: 395 } },
  { at: T0, command: createSession() },
  { at: T0 + 8, command: { type: 'Assign', organizationId: ORGANIZATION, sessionId: SESSION } },
  {
    at: T0 + 9,
    command: {
      type: 'ActivateSession',
      workload: { ...browser(WORKLOAD), serverId: SERVER },
      now: T0 + 9,
    },
  },
  { at: T0 + SECOND, command: { type: 'RecordAccess', via: 'cdp', now: T0 + SECOND } },
  { at: ENDED_AT - 300, command: { type: 'StopSession', reason: 'user', now: ENDED_AT - 300 } },
  { at: ENDED_AT - 295, command: { type: 'Terminate', reason: 'session_ended' } },
  { at: ENDED_AT, command: { type: 'ConfirmStopped', now: ENDED_AT } },
  {
    at: ENDED_AT + 5,
    command: { type: 'ReportTerminated', reason: 'session_ended', exitCode: 0 },
  },
];

/** All events in the order of the event store, the organizations' first. */
export function* endedSessions(options: EndedSessions): Generator<EncodedEvent, void, void> {
  const { sessions, organizations, endedAt } = options;
  const ledgers = new Map<string, LedgerState>();
  for (const organization of organizations) {
    yield* registered(organization, endedAt(0) - 10 * MINUTE);
    ledgers.set(organization.id, granted());
  }
  const templates = templatesOfLife();
  for (let number = 0; number < sessions; number += 1) {
    const organizationId = organizations[number % organizations.length]?.id ?? '';
    const life = lifeOf(number, organizationId, endedAt(number));
    let ledger = ledgers.get(organizationId) ?? emptyLedger;
    for (const template of templates) {
      if (template.ledger !== null) {
        ledger = evolveLedger(ledger, template.ledger);
        life.values[LEDGER] = JSON.stringify(ledger);
      }
      yield {
        subject: written(template.subject, life),
        headers: written(template.headers, life),
        body: written(template.body, life),
      };
    }
    ledgers.set(organizationId, ledger);
  }
}

/** The id of a generated session, by its number. */
export function endedSessionId(number: number): string {
  return `ses_${digestOf(number).slice(0, 22)}`;
}

/** 43 characters that look random, as real ids do. */
function digestOf(number: number): string {
  return createHash('sha256').update(`ended session ${number}`).digest('base64url');
}

function lifeOf(number: number, organizationId: string, endedAt: number): Life {
  const digest = digestOf(number);
  const values = {
    [SESSION]: `ses_${digest.slice(0, 22)}`,
    [WORKLOAD]: `wl_${digest.slice(21)}`,
    [ORGANIZATION]: organizationId,
    [ROOT]: digest.slice(10, 30),
  };
  return { values, endedAt };
}

function templatesOfLife(): Template[] {
  const session: RefOf<'session'> = { kind: 'session', organizationId: ORGANIZATION, id: SESSION };
  const ledger: RefOf<'ledger'> = { kind: 'ledger', organizationId: ORGANIZATION };
  const workload: RefOf<'workload'> = { kind: 'workload', id: WORKLOAD };
  const states = { session: null as SessionState | null, workload: null as WorkloadState | null };
  let balance = granted();
  const made: Template[] = [];
  for (const { at, command } of steps) {
    const encodeNext = (aggregate: RefOf<AggregateKind>, event: object, state: object) =>
      encoded(aggregate, event, state, at, made.length);
    if (!isOfSession(command)) {
      for (const event of decideWorkload(command, states.workload)) {
        states.workload = evolve<'workload'>(workload, states.workload, event);
        made.push(templateOf(encodeNext(workload, event, states.workload), null));
      }
      continue;
    }
    const events = decide(command, states.session);
    if (isRejection(events)) throw new Error(`${command.type} was rejected`);
    for (const event of events) {
      states.session = evolve<'session'>(session, states.session, event);
      made.push(templateOf(encodeNext(session, event, states.session), null));
      const change = ledgerCommandFor(event, SESSION, { concurrentSessions: 1 });
      const changes = change === null ? [] : decideLedger(change, balance);
      if (isRejection(changes)) throw new Error(`${command.type}: the ledger rejected it`);
      for (const entry of changes) {
        balance = evolveLedger(balance, entry);
        const { body, ...rest } = encodeNext(ledger, entry, balance);
        const open = body.replace(JSON.stringify(balance), LEDGER);
        made.push(templateOf({ ...rest, body: open }, entry));
      }
    }
  }
  return made;
}

function isOfSession(command: SessionCommand | WorkloadCommand): command is SessionCommand {
  return 'now' in command;
}

/** `number`: the event's number in its life; its ids end with it. */
function encoded(
  aggregate: RefOf<AggregateKind>,
  event: object,
  state: object,
  at: number,
  number: number,
): EncodedEvent {
  const own = `${ROOT}${String(number).padStart(2, '0')}`;
  const message = encode({
    aggregate,
    ...(event as Aggregates[AggregateKind]['event']),
    id: `evt_${own}`,
    time: iso(at),
    state,
    metadata: {
      actor: { kind: 'service', id: 'ended-sessions' },
      commandId: `cmd_${own}`,
      correlationId: `cor_${ROOT}00`,
      causationId: null,
    },
  });
  const lines = Object.entries(message.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = Buffer.from(message.body).toString();
  return { subject: message.subject, headers: lines.join(''), body };
}

function templateOf(event: EncodedEvent, ledger: LedgerEvent | null): Template {
  const { subject, headers, body } = event;
  return { subject: textOf(subject), headers: textOf(headers), body: textOf(body), ledger };
}

function textOf(text: string): Text {
  const parts = text.split(PLACEHOLDER);
  // What the expression matched stands at the odd places.
  return parts.map((part, at) => {
    if (at % 2 === 0) return part;
    const offset = Date.parse(part) - ENDED_AT;
    if (Number.isNaN(offset)) return ({ values }: Life) => values[part] ?? '';
    return ({ endedAt }: Life) => iso(endedAt + offset);
  });
}

function written(text: Text, life: Life): string {
  let all = '';
  for (const part of text) all += typeof part === 'string' ? part : part(life);
  return all;
}

function granted(): LedgerState {
  return evolveLedger(null, { type: 'ledger.credits-granted', data: { credits: CREDITS } });
}

/** The organization's registration, its credits and its key. */
function* registered({ id, tier, apiKey }: KnownOrganization, at: number) {
  const aggregate = { kind: 'organization', organizationId: id } as const;
  const digest = createHash('sha256').update(id).digest('base64url').slice(0, 20);
  const own = ({ subject, headers, body }: EncodedEvent) => ({
    subject,
    headers: headers.replaceAll(ROOT, digest),
    body,
  });
  const key: ApiKey = {
    ...{ keyId: `key_${id}`, hash: hashKey(apiKey), role: 'owner', userId: id },
    issuedAt: iso(at),
  };
  const commands = [
    { type: 'RegisterOrganization', name: id, tier },
    { type: 'IssueKey', key },
  ] as const;
  let state: Aggregates['organization']['state'] | null = null;
  for (const [number, command] of commands.entries()) {
    const events = decideOrganization(command, state);
    if (isRejection(events)) throw new Error(`${command.type} was rejected`);
    for (const event of events) {
      state = evolve<'organization'>(aggregate, state, event);
      yield own(encoded(aggregate, event, state, at, number));
    }
  }
  const grant = { type: 'ledger.credits-granted', data: { credits: CREDITS } } as const;
  const ledger = { kind: 'ledger', organizationId: id } as const;
  yield own(encoded(ledger, grant, granted(), at, commands.length));
}

/** Events whose last one is acknowledged, and how many times that may wait for the server. */
const WINDOW = 1_000;
const WINDOWS = 4;
const WITHIN_MS = 60_000;

/**
 * Appends the events to an event store that has none, as fast as the server takes them: it
 * acknowledges one of a thousand, and its sequence tells that none is missing before it. At most
 * 4,000 are on the way; from 10,000 on the server drops some.
 * @returns their number
 */
export async function fillWithEndedSessions(
  nc: NatsConnection,
  options: EndedSessions,
  onProgress: (events: number) => void = () => {},
): Promise<number> {
  const waiting: Promise<void>[] = [];
  let count = 0;
  let last: EncodedEvent | null = null;
  const acknowledged = async ({ subject, headers, body }: EncodedEvent, sequence: number) => {
    const sent = { headers: rawHeaders(headers), timeout: WITHIN_MS };
    const answer = (await nc.request(subject, body, sent)).json<{ seq?: number }>();
    if (answer.seq !== sequence)
      throw new Error(`event ${sequence} was stored otherwise: ${JSON.stringify(answer)}`);
    onProgress(sequence);
  };
  for (const event of endedSessions(options)) {
    if (last !== null) {
      count += 1;
      if (count % WINDOW === 0) {
        const stored = acknowledged(last, count);
        stored.catch(() => undefined); // it is awaited below
        if (waiting.push(stored) >= WINDOWS) await waiting.shift();
      } else nc.publish(last.subject, last.body, { headers: rawHeaders(last.headers) });
    }
    last = event;
  }
  if (last !== null) waiting.push(acknowledged(last, ++count));
  await Promise.all(waiting);
  return count;
}

/** The client's own headers take a third of the total time: it needs only their bytes. */
function rawHeaders(lines: string): MsgHdrs {
  const bytes = Buffer.from(`NATS/1.0\r\n${lines}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
}

/**
 * Work queues that have handled all of it, as those of a service that has run since the first
 * session.
 */
export async function passWorkQueues({ jsm }: JetStreamConnection): Promise<void> {
  const queues = { timekeeper: filters.sessionTimers, provisioner: filters.sessionRequests };
  for (const [name, subjects] of Object.entries(queues))
    await jsm.consumers.add(EVENTS_STREAM, {
      ...{ durable_name: name, ack_policy: 'explicit', deliver_policy: 'new' },
      filter_subjects: subjects,
    });
}
