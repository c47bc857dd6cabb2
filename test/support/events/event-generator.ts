import { mulberry32 } from '#test/support/random.ts';
import { encode, type Message } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import type { WorkloadEvent } from '#events/workload.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import * as domain from '../examples.ts';
import { aCause, slotReserved } from '../events.fixture.ts';

/**
 * Generates the events of very many sessions, their ledgers and browsers, like those of a busy
 * service.
 */

/** Placeholders in the templates; each generated history has its own ids. */
const SESSION = 'SESSION-of-a-life';
const WORKLOAD = 'WORKLOAD-of-a-life';
const ORGANIZATION = 'org_lives';
const CREATED_AT = domain.iso(domain.T0);

type Template = { subject: string; headers: Record<string, string>; body: string };

const { requested, queued, assigned, activated, accessed, extended } = domain;
const { stopRequested, stopped, failed, T0, MINUTE, HOUR } = domain;
const access = (minute: number) => accessed(T0 + minute * MINUTE);
const browser = domain.browser(WORKLOAD);

/** The events of sessions with different ends. */
const sessionHistories = [
  [
    requested(),
    assigned(WORKLOAD),
    activated(T0, browser),
    access(1),
    access(3),
    stopRequested(),
    stopped(T0 + HOUR, 60),
  ],
  [
    requested({ labels: { team: 'web', run: 'nightly' } }),
    activated(T0, browser),
    access(2),
    stopRequested('idle'),
    stopped(T0 + HOUR, 60, 'idle'),
  ],
  [
    requested({ labels: { team: 'shop' } }),
    queued,
    assigned(WORKLOAD),
    activated(T0, browser),
    extended(HOUR, T0 + 3 * HOUR),
    access(4),
    access(9),
  ],
  [requested({ labels: {} }), queued, failed({ reason: 'queue_timeout' })],
  [requested(), failed()],
] as const;

const workloadHistory: WorkloadEvent[] = [
  { type: 'workload.provisioning', data: { serverId: 'srv_1' } },
  { type: 'workload.launching', data: {} },
  { type: 'workload.idle', data: { launchMs: 300 } },
  { type: 'workload.assigned', data: { organizationId: ORGANIZATION, sessionId: SESSION } },
  { type: 'workload.terminating', data: { reason: 'session_ended' } },
  { type: 'workload.terminated', data: { reason: 'session_ended', exitCode: 0 } },
];

function templatesOf<Kind extends AggregateKind>(
  aggregate: RefOf<Kind>,
  happened: readonly Aggregates[Kind]['event'][],
): Template[] {
  let state: Aggregates[Kind]['state'] | null = null;
  return happened.map((event) => {
    state = evolve<Kind>(aggregate, state, event);
    const metadata = aCause('command-of-a-life');
    return template(encode({ aggregate, ...event, id: 'ID', time: CREATED_AT, state, metadata }));
  });
}

function template({ subject, headers, body }: Message): Template {
  return { subject, headers, body: new TextDecoder().decode(body) };
}

/** The events of a session, of its browser if it has one, and of the ledger, in order. */
const histories: readonly Template[][] = sessionHistories.map((happened) => {
  const session = { kind: 'session', organizationId: ORGANIZATION, id: SESSION } as const;
  const own = templatesOf<'session'>(session, happened);
  const isServed = happened.some(({ type }) => type === 'session.activated');
  const browsers = isServed
    ? templatesOf<'workload'>({ kind: 'workload', id: WORKLOAD }, workloadHistory)
    : [];
  return [
    ...browsers.slice(0, 3),
    template(encode(slotReserved(session))),
    ...own.slice(0, 2),
    ...browsers.slice(3, 4),
    ...own.slice(2),
    ...browsers.slice(4),
  ];
});

export const generatedOrganization = ORGANIZATION;

/** An event as it is published. */
export type GeneratedEvent = { subject: string; headers: Record<string, string>; body: string };

/** Sessions in progress at once: their events interleave. */
const AT_ONCE = 500;

/** That many events of interleaved sessions; every call yields the same ones. */
export function* generateEvents(count: number): Generator<GeneratedEvent, void, void> {
  const random = mulberry32(42);
  const open: { number: number; rest: Template[] }[] = [];
  let begun = 0;
  for (let made = 0; made < count; made += 1) {
    while (open.length < AT_ONCE) {
      const which = Math.floor(random() * histories.length);
      open.push({ number: begun, rest: [...(histories[which] ?? [])] });
      begun += 1;
    }
    const at = Math.floor(random() * open.length);
    const history = open[at];
    const next = history?.rest.shift();
    if (history === undefined || next === undefined) throw new Error('a history without events');
    if (history.rest.length === 0) open.splice(at, 1);
    yield eventOf(next, history.number, made);
  }
}

function eventOf(
  { subject, headers, body }: Template,
  history: number,
  made: number,
): GeneratedEvent {
  const createdAt = domain.iso(T0 + history);
  const own = (text: string) =>
    text
      .replaceAll(SESSION, `ses_${history}`)
      .replaceAll(WORKLOAD, `wl_${history}`)
      .replaceAll(CREATED_AT, createdAt);
  const id = `evt_${made}`;
  return {
    subject: own(subject),
    headers: { ...headers, 'ce-id': id, 'ce-subject': own(headers['ce-subject'] ?? '') },
    body: own(body),
  };
}
