import { Type } from 'typebox';
import { Count, Nullable } from './fields.ts';
import { invalid } from '../http/validation.ts';

/** Schemas of a session's history and of why it is where it is. */

const HISTORY_DEFAULT = 100;
const HISTORY_MAX = 500;

/** The sequence after which a page begins. */
export const afterParameter = (description: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      description,
      refusal: (after: unknown) =>
        invalid({ field: 'after', after }, 'after must be a sequence, as a page gave it as next.'),
    }),
  );

/** The greatest number of events of a page. */
export const limitParameter = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: HISTORY_MAX,
    default: HISTORY_DEFAULT,
    description: `events per page, 1 to ${HISTORY_MAX}`,
    refusal: (limit: unknown) =>
      invalid({ field: 'limit', limit }, `limit must be a whole number from 1 to ${HISTORY_MAX}.`),
  }),
);
export { HISTORY_DEFAULT as PAGE_DEFAULT };

export const HistoryQuery = Type.Object(
  {
    limit: limitParameter,
    after: afterParameter('`next` of the previous page: events with a higher sequence'),
  },
  { additionalProperties: false },
);

const ACTIVATED = {
  sequence: 48_211,
  id: 'evt_c0Zq4nRk1mT8yXwU5sLd2B',
  type: 'session.activated',
};
const TIME = '2026-11-20T09:30:00.041Z';
const Time = Type.String({ format: 'date-time', examples: [TIME] });
const Position = Count(ACTIVATED.sequence, 'position in the event store');
const EventType = Type.String({ examples: [ACTIVATED.type] });

/** How a request came, if not through the REST API. */
export const Door = {
  via: Type.Optional(
    Type.String({
      examples: ['mcp'],
      description: 'door that the request came through; absent: the REST API, or no request',
    }),
  ),
  client: Type.Optional(
    Type.String({
      examples: ['agent 1.0'],
      description: 'how the program behind that door names itself; unchecked',
    }),
  ),
};

const EventActor = Type.Object(
  {
    kind: Type.String({ examples: ['service'], description: 'user, operator or service' }),
    id: Type.String({ examples: ['provisioner'] }),
    ...Door,
  },
  { title: 'EventActor' },
);

const EventCause = Type.Object(
  {
    sequence: Nullable(Count(48_209), { examples: [48_209] }),
    type: Nullable(Type.String(), { examples: ['session.requested'] }),
    id: Type.String({ examples: ['evt_J5mYt3QKX2m0bq1uHcR8Vw'] }),
  },
  {
    title: 'EventCause',
    description:
      'the event that caused this one; without sequence and type if it is not known here',
  },
);

const FieldChange = Type.Object(
  {
    field: Type.String({ examples: ['status'] }),
    from: Type.Optional(
      Type.Unknown({ examples: ['creating'], description: 'absent: there was no such field' }),
    ),
    to: Type.Unknown({ examples: ['active'] }),
  },
  { title: 'FieldChange' },
);

const HistoryEvent = Type.Object(
  {
    sequence: Position,
    id: Type.String({ examples: [ACTIVATED.id], description: 'CloudEvents id' }),
    type: EventType,
    time: Time,
    actor: EventActor,
    because_of: Nullable(EventCause),
    data: Type.Unknown({
      examples: [{ startedAt: TIME }],
      description: 'as in the event streams: /docs/events',
    }),
    changes: Type.Array(FieldChange, { description: 'the fields of `state` that it changed' }),
    state: Type.Unknown({
      examples: [{ status: 'active' }],
      description: 'the session after it, as in the event streams',
    }),
  },
  { title: 'HistoryEvent' },
);

export const SessionHistory = Type.Object(
  {
    events: Type.Array(HistoryEvent, { description: 'oldest first' }),
    next: Nullable(Count(48_311), {
      examples: [null],
      description:
        '`after` of the next page; null: there is none yet. A page may have fewer than `limit`',
    }),
  },
  { title: 'SessionHistory' },
);

const Link = Type.Object(
  {
    sequence: Nullable(Count(48_390), { examples: [48_390] }),
    sentence: Type.String({
      examples: ['its stop was requested because it expired'],
      description: 'the last output of a browser follows on lines of its own',
    }),
    actor: Nullable(EventActor),
    time: Nullable(Time, { examples: ['2026-11-20T11:00:00.012Z'] }),
  },
  { title: 'Cause', description: 'all but the sentence are null for a timer that fired' },
);

const RelatedEvent = Type.Object(
  {
    sequence: Position,
    type: EventType,
    sentence: Type.String({ examples: ['it got browser wl_1 of server srv_1'] }),
    actor: EventActor,
    time: Time,
  },
  { title: 'RelatedEvent' },
);

const Told = {
  at: Time,
  text: Type.String({ examples: ['Uncaught TypeError: cart is undefined'] }),
  address: Type.Optional(Type.String({ examples: ['https://shop.example/pay'] })),
};
const Said = Type.Object(Told, { title: 'BlackBoxEntry' });
const SaidByDialog = Type.Object(
  {
    ...Told,
    kind: Type.String({ examples: ['confirm'] }),
    accepted: Type.Optional(
      Type.Boolean({
        examples: [false],
        description: 'how it was answered; absent: it was open at the end',
      }),
    ),
  },
  { title: 'BlackBoxDialog' },
);

const SessionBlackBox = Type.Object(
  {
    address: Nullable(Type.String(), { examples: ['https://shop.example/pay'] }),
    console_errors: Type.Array(Said),
    failed_requests: Type.Array(Said),
    exceptions: Type.Array(Said),
    dialogs: Type.Array(SaidByDialog),
    page_crashes: Count(0, 'pages that crashed while the browser went on'),
    exit_code: Nullable(Type.Integer(), { examples: [null] }),
    signal: Nullable(Type.String(), { examples: ['SIGKILL'] }),
    out_of_memory: Type.Boolean({ examples: [false] }),
    memory_peak_bytes: Nullable(Count(312_000_000), { examples: [312_000_000] }),
    thumbnail: Type.Boolean({ examples: [true], description: 'whether a last picture was taken' }),
    dropped: Count(0, 'entries beside those that were kept'),
    told: Type.Array(Type.String(), {
      examples: [['the page’s last error was: Uncaught TypeError: cart is undefined']],
      description: 'the same in sentences, the most telling first',
    }),
  },
  {
    title: 'BlackBox',
    description:
      'what the browser told before the end, oldest first and masked: addresses without query, ' +
      'fragment and user, no token, no password',
  },
);

export const SessionWhy = Type.Object(
  {
    summary: Type.String({
      examples: [
        'Session ses_1 of organization acme stopped (expired) at 2026-11-20T11:00:00.312Z, ' +
          'after 1h30m, 1h29m of it with a browser (6 events).',
      ],
    }),
    chain: Type.Array(Link, {
      description: 'from its last change back to the root cause: each because of the next',
    }),
    black_box: Nullable(SessionBlackBox, {
      description: 'null: not ended, nothing to tell, or `black_box: false` at create',
    }),
    related: Type.Array(RelatedEvent, {
      description:
        'what happened to it, to its browsers, to their servers and in the ledger for it, oldest ' +
        'first; of its uses the last alone',
    }),
    complete: Type.Boolean({
      examples: [true],
      description: 'false: of a long session, events between the first and the newest are left out',
    }),
  },
  { title: 'SessionWhy' },
);
