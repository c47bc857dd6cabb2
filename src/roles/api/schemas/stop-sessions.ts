import { Type, type Static } from 'typebox';
import type { SessionFilter } from '#events/organization.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { MOMENT_PATTERN, readMoment } from '#src/kernel/moment.ts';
import { Count, Nullable, Words } from './fields.ts';
import { LABELS_MAX, readLabel } from './label.ts';
import { LINE } from './requests.ts';

/** Statuses of sessions that a stop changes. */
export const stoppable = ['creating', 'queued', 'active'] as const;
export type Stoppable = (typeof stoppable)[number];

const Filter = Type.Object(
  {
    status: Type.Optional(Words(stoppable, { description: 'only sessions with this status' })),
    label: Type.Optional(
      Type.Array(Type.String({ pattern: `^[A-Za-z0-9_.-]{1,63}=${LINE}{0,128}$` }), {
        maxItems: LABELS_MAX,
        description: 'key=value; all must match',
      }),
    ),
    created_before: Type.Optional(
      Type.String({
        format: 'date-time',
        pattern: MOMENT_PATTERN,
        description: 'only sessions that were created before this time (RFC 3339)',
      }),
    ),
    user_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        pattern: `^${LINE}*$`,
        description: 'only sessions of this user',
      }),
    ),
  },
  {
    title: 'StopFilter',
    additionalProperties: false,
    description: 'which open sessions; all restrictions must match, and one at least is required',
    examples: [{ label: ['team=web'] }],
  },
);

export const StopSessionsBody = Type.Object(
  {
    filter: Filter,
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        pattern: `^${LINE}*$`,
        description: 'for people, one line; each session’s history has it',
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'true: only find the sessions, and stop none. Default false' }),
    ),
  },
  {
    title: 'StopSessions',
    additionalProperties: false,
    examples: [{ filter: { label: ['team=web'] }, reason: 'deploy', dry_run: true }],
  },
);

const ID = 'ses_J5mYt3QKX2m0bq1uHcR8Vw';

export const SessionsStopped = Type.Object(
  {
    dry_run: Type.Boolean({ examples: [false] }),
    matched: Count(1, 'open sessions that match'),
    stopped: Count(1, 'sessions of this request that are stopping or have ended; 0 in a dry run'),
    sessions: Type.Array(Type.String(), {
      description: 'these sessions; in a dry run those that would be stopped',
      examples: [[ID]],
    }),
    reason: Nullable(Type.String(), { description: 'as sent', examples: ['deploy'] }),
    failed: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String({ examples: [ID] }),
          error: Type.String({ description: 'name of the error', examples: ['UNAVAILABLE'] }),
        }),
        {
          description:
            'sessions that could not be stopped yet; absent if there are none. Repeat the request',
        },
      ),
    ),
  },
  { title: 'SessionsStopped' },
);

/** The filter as events have it; absent fields do not restrict. */
export function readFilter(
  sent: Static<typeof Filter>,
): (SessionFilter & { status?: Stoppable }) | Rejection {
  const { status, label = [], created_before, user_id: userId } = sent;
  const pairs = label.map(readLabel);
  const labels = Object.fromEntries(pairs);
  // Of two values of a label only one would be left, and more sessions stopped than were meant.
  if (pairs.some(([name, value]) => labels[name] !== value))
    return reject('INVALID_REQUEST', { field: 'filter.label' }, TWO_VALUES);
  const before = readMoment(created_before);
  return {
    ...(status === undefined ? {} : { status }),
    ...(pairs.length === 0 ? {} : { labels }),
    ...(before === null ? {} : { createdBefore: new Date(before).toISOString() }),
    ...(userId === undefined ? {} : { userId }),
  };
}
const TWO_VALUES = { message: 'filter.label: a session has one value of each label.' };
