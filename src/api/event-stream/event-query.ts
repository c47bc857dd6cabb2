import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { aggregates } from '#events/events.ts';
import { reject, type Rejected } from '../../errors.ts';
import { MOMENT_PATTERN, readMoment } from '#src/moment.ts';
import { LABELS_MAX, labelSchema, readLabel } from '../schemas/label.ts';
import type { Documented } from '../http/route.ts';

/**
 * What a request wants to hear, and from where on; `begin` is null where it says nothing of that.
 */
export type EventQuery = {
  asked: {
    types: readonly string[];
    labels: readonly (readonly [name: string, value: string])[];
    since: string | null;
  };
  begin: number | 'since' | null;
};

/** Kinds of aggregates whose events are an organization's own. */
type TenantKind = 'session' | 'ledger' | 'organization';

const POSITION_PATTERN = '^[0-9]{1,15}$';
const POSITION = new RegExp(POSITION_PATTERN);

/** The parameters of a stream of events of these kinds, as they are documented. */
export function eventParameters(kinds: readonly TenantKind[]): Record<string, Documented> {
  return {
    from: {
      // Every log has the first position.
      schema: Type.String({ pattern: `${POSITION_PATTERN}|${MOMENT_PATTERN}`, examples: ['1'] }),
      description:
        'a sequence, which is the first to be sent, or a time (RFC 3339), from which on; ' +
        '`Last-Event-ID` wins over it',
    },
    type: {
      schema: Type.Array(Type.String({ examples: [typesOf(kinds)[0]] })),
      description: 'events of this type alone; repeat it for several',
    },
    label: {
      schema: labelSchema,
      description: 'key=value: of sessions with this label alone; repeat it: all must match',
    },
  };
}

export const eventHeaders: Record<string, Documented> = {
  'Last-Event-ID': {
    schema: Type.String({ examples: ['0'] }),
    description:
      'the `id` of the last event received: what follows it is sent; 0: the whole backlog',
  },
};

/** Reads a request's parameters; a refusal where one of them is wrong. */
export function readEventQuery(
  request: FastifyRequest,
  kinds: readonly TenantKind[],
): EventQuery | Rejected {
  const { from, type, label } = request.query as Record<string, string | string[]>;
  const known = typesOf(kinds);
  const types = [...new Set([type ?? []].flat())];
  const strange = types.find((one) => !known.includes(one));
  if (strange !== undefined)
    return invalid('There is no such type of event here.', { field: 'type', type: strange, known });
  const labels = [label ?? []].flat().map(readLabel);
  if (labels.length > LABELS_MAX)
    return invalid(`At most ${LABELS_MAX} labels can be asked for.`, { field: 'label' });
  if (labels.includes(null)) return invalid('label must be key=value.', { field: 'label', label });
  const begin = readBegin(request.headers['last-event-id'], from);
  if ('rejected' in begin) return begin;
  return {
    asked: { types, labels: labels.filter((one) => one !== null), since: begin.since },
    begin: begin.begin,
  };
}

/** The types of these kinds' events. */
export function typesOf(kinds: readonly TenantKind[]): string[] {
  return kinds.flatMap((kind) => Object.keys(aggregates[kind].events));
}

type Begin = { begin: EventQuery['begin']; since: string | null };

/** A client that reconnects sends the id beside the address it first asked: the id is newer. */
function readBegin(
  lastEventId: string | string[] | undefined,
  from: string | string[] | undefined,
): Begin | Rejected {
  const at = readMoment(from);
  const isSequence = typeof from === 'string' && POSITION.test(from);
  if (from !== undefined && at === null && !isSequence)
    return invalid('from must be a sequence or a time like 2026-11-20T09:30:00Z.', {
      field: 'from',
      from,
    });
  const since = at === null ? null : new Date(at).toISOString();
  // An EventSource that has had no id yet sends an empty one, or none.
  if (lastEventId !== undefined && lastEventId !== '') {
    if (typeof lastEventId !== 'string' || !POSITION.test(lastEventId))
      return invalid('Last-Event-ID must be the id of an event.', {
        field: 'Last-Event-ID',
        last_event_id: lastEventId,
      });
    return { begin: Number(lastEventId), since };
  }
  if (at !== null) return { begin: 'since', since };
  return { begin: isSequence ? Math.max(0, Number(from) - 1) : null, since };
}

function invalid(message: string, context: Record<string, unknown>): Rejected {
  return reject('INVALID_REQUEST', context, { message });
}
