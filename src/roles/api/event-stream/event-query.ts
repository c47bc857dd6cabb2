import { Type, type Static } from 'typebox';
import { aggregates } from '#events/events.ts';
import { isPublic } from '#events/public-event.ts';
import { MOMENT_PATTERN, readMoment } from '#src/kernel/moment.ts';
import { invalid, itemOf, type Flaw } from '../http/validation.ts';
import { Words } from '../schemas/fields.ts';
import { LABELS_MAX, labelParameter, readLabel } from '../schemas/label.ts';

/**
 * The events that a request subscribes to, and the position; `begin` is null where the request
 * names none.
 */
export type EventQuery = {
  asked: {
    types: readonly string[];
    labels: readonly (readonly [name: string, value: string])[];
    since: string | null;
  };
  begin: number | 'since' | null;
};

/** Kinds of aggregates whose events belong to an organization. */
type TenantKind = 'session' | 'ledger' | 'organization' | 'profile';

const POSITION_PATTERN = '^[0-9]{1,15}$';

/** The query of a stream of events of these kinds. */
export function eventQuery(kinds: readonly TenantKind[]) {
  const known = typesOf(kinds);
  return Type.Object(
    {
      from: Type.Optional(
        Type.String({
          pattern: `${POSITION_PATTERN}|${MOMENT_PATTERN}`,
          // Every event store has the first position.
          examples: ['1'],
          description:
            'start of the stream: a sequence, or a time (RFC 3339), both included; ' +
            '`Last-Event-ID` takes precedence',
          refusal: (from: unknown) =>
            invalid(
              { field: 'from', from },
              'from must be a sequence or a time like 2026-11-20T09:30:00Z.',
            ),
        }),
      ),
      type: Type.Optional(
        Type.Array(Words(known, { examples: [known[0]] }), {
          description: 'only events of this type; repeat the parameter for several',
          refusal: (sent: unknown, flaw: Flaw) =>
            invalid(
              { field: 'type', type: itemOf(sent, flaw), known },
              'There is no such type of event here.',
            ),
        }),
      ),
      label: labelParameter(
        'key=value: of sessions with this label alone; repeat it: all must match',
        (label, { keyword }) =>
          keyword === 'maxItems'
            ? invalid({ field: 'label' }, `At most ${LABELS_MAX} labels can be asked for.`)
            : invalid({ field: 'label', label }, 'label must be key=value.'),
      ),
    },
    { additionalProperties: false },
  );
}

export const EventHeaders = Type.Object({
  'Last-Event-ID': Type.Optional(
    Type.String({
      // An EventSource that has received no id yet sends an empty one, or none.
      pattern: '^([0-9]{1,15})?$',
      examples: ['0'],
      description: 'the `id` of the last event received; the stream begins after it. 0: all events',
      refusal: (sent: unknown) =>
        invalid(
          { field: 'Last-Event-ID', last_event_id: sent },
          'Last-Event-ID must be the id of an event.',
        ),
    }),
  ),
});

/** The subscription of a valid request. */
export function readEventQuery(
  query: Static<ReturnType<typeof eventQuery>>,
  headers: { 'last-event-id'?: string },
): EventQuery {
  const { from, type = [], label = [] } = query;
  const at = readMoment(from);
  const since = at === null ? null : new Date(at).toISOString();
  return {
    asked: { types: [...new Set(type)], labels: label.map(readLabel), since },
    begin: beginOf(headers['last-event-id'] ?? '', from, since),
  };
}

/** A client that reconnects sends the id beside its original address: the id is newer. */
function beginOf(lastEventId: string, from: string | undefined, since: string | null) {
  if (lastEventId !== '') return Number(lastEventId);
  if (since !== null) return 'since';
  return from === undefined ? null : Math.max(0, Number(from) - 1);
}

/** The event types of these kinds that organizations get. */
export function typesOf(kinds: readonly TenantKind[]): string[] {
  return kinds.flatMap((kind) => Object.keys(aggregates[kind].events).filter(isPublic));
}
