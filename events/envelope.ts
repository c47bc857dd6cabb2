import { Type, type Static } from 'typebox';

/** The longest name of a client that an event holds, in characters. */
export const CLIENT_LENGTH_MAX = 100;

/** The doors by which a request may come beside the REST API. */
export type Via = 'mcp' | 'webdriver' | 'one-call';

/**
 * The actor that caused an event. `id` is a user, key, server or role name; never a secret. `via`
 * is the door that its request came through; absent: the REST API, or no request. `client` is how
 * the program on the other side of that door names itself, for example `agent 1.0`; the service
 * does not check it. A door that a newer version adds is read like any other.
 */
export const Actor = Type.Object({
  kind: Type.Union([Type.Literal('user'), Type.Literal('operator'), Type.Literal('service')]),
  id: Type.String({ minLength: 1, maxLength: 256 }),
  via: Type.Optional(Type.String({ pattern: '^[a-z][a-z-]{0,31}$' })),
  client: Type.Optional(Type.String({ minLength: 1, maxLength: CLIENT_LENGTH_MAX })),
});
export type Actor = Static<typeof Actor>;

/**
 * The cause of an append; the same for all events of one command. `causationId` is the id of the
 * event (or fired timer) that led to the command, else null.
 */
export type EventMetadata = {
  actor: Actor;
  commandId: string;
  correlationId: string;
  causationId: string | null;
  traceparent?: string;
};

/** The required attributes around every event's data. */
export const Envelope = Type.Object({
  id: Type.String({ minLength: 1 }),
  time: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
  metadata: Type.Object({
    actor: Actor,
    commandId: Type.String({ minLength: 1 }),
    correlationId: Type.String({ minLength: 1 }),
  }),
});

/** A schema per event type, as each aggregate's file declares them. */
export type EventSchemas = Record<string, Parameters<typeof Type.Array>[0]>;

/** The union of the events of one aggregate: `{ type, data }`, discriminated by `type`. */
export type EventOf<Schemas extends EventSchemas> = {
  [Name in keyof Schemas & string]: { type: Name; data: Static<Schemas[Name]> };
}[keyof Schemas & string];

/** An event as stored: its data, its metadata, and the aggregate's state after it. */
export type Recorded<Event, State> = Event & {
  /** CloudEvents id, unique. */
  id: string;
  /** ISO 8601 UTC, the time of the decision. */
  time: string;
  /** Position in the EVENTS stream; increases by one per event, over all aggregates. */
  sequence: number;
  metadata: EventMetadata;
  /**
   * The fold of the aggregate's history up to and including this event. Null: the event was written
   * with another state version, and a reader that needs the state folds the history.
   */
  state: State | null;
};
