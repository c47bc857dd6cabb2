import { Type, type Static } from 'typebox';
import type { Handoff as HandoffState } from '#events/handoff.ts';
import type { SessionState } from '#events/session.ts';
import { ShareMode, type Share as ShareState } from '#events/share.ts';
import { parseDuration } from '#src/kernel/domain/session/duration.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { Nullable, Timestamp, Words } from './fields.ts';
import { Duration, LINES } from './requests.ts';

/** Schemas of hand-offs and shares: who else steers or watches a session. */

const EXAMPLE = {
  session: 'ses_J5mYt3QKX2m0bq1uHcR8Vw',
  handoff: 'hof_2tYc0NgR8VwXb4n9T6kLw0',
  share: 'shr_9T6kLw0yPq2mVz8sHgJ5mY',
  instructions: 'Please sign in to the shop, then give the browser back.',
  at: '2026-11-20T09:31:00.000Z',
  later: '2026-11-20T09:33:10.000Z',
  end: '2026-11-20T09:41:00.000Z',
  ticket: 'https://browsers.example.com:8443/vnc/kq0Yw7c9TtW6x3nB2aPz1g',
};

export const handoffStatuses = ['requested', 'taken', 'completed', 'expired'] as const;

const handoffFields = {
  id: Type.String({ examples: [EXAMPLE.handoff] }),
  session_id: Type.String({ examples: [EXAMPLE.session] }),
  status: Words(handoffStatuses, {
    title: 'HandoffStatus',
    examples: ['requested'],
    description:
      'requested: it waits for a person; taken: a person steers alone, and automation waits; ' +
      'completed: the person gave it back; expired: its time, or its session, ended',
  }),
  instructions: Type.String({ examples: [EXAMPLE.instructions] }),
  requested_at: Timestamp(EXAMPLE.at),
  requested_by: Type.String({ examples: ['agent'] }),
  expires_at: Timestamp(EXAMPLE.end),
  taken_at: Nullable(Timestamp(EXAMPLE.later), { examples: [null] }),
  taken_by: Nullable(Type.String(), { examples: [null] }),
  completed_at: Nullable(Timestamp(EXAMPLE.later), { examples: [null] }),
  note: Nullable(Type.String(), {
    examples: [null],
    description: 'what the person said about it; null until it is completed',
  }),
  success: Nullable(Type.Boolean(), {
    examples: [null],
    description: 'whether the person did what was asked; null until it is completed',
  }),
};

export const Handoff = Type.Object(handoffFields, { title: 'Handoff' });

export const HandoffList = Type.Object({ handoffs: Type.Array(Handoff) }, { title: 'HandoffList' });

export const TakenHandoff = Type.Object(
  {
    ...handoffFields,
    viewer_url: Type.String({
      examples: [`${EXAMPLE.ticket}/#password=v8Xq2LmP`],
      description: 'a page that shows the screen and steers it, until the hand-off is over',
    }),
    vnc_url: Type.String({
      examples: [`${EXAMPLE.ticket.replace('https', 'wss')}/websockify`],
      description: 'VNC over WebSocket, as long',
    }),
    vnc_password: Type.String({ examples: ['v8Xq2LmP'], description: 'a secret' }),
  },
  { title: 'TakenHandoff' },
);

export const RequestHandoffBody = Type.Object(
  {
    instructions: Type.String({
      minLength: 1,
      maxLength: 2048,
      pattern: `^${LINES}+$`,
      description: 'what the person is asked to do',
    }),
    timeout: Type.Optional(Duration),
  },
  {
    title: 'RequestHandoff',
    additionalProperties: false,
    examples: [{ instructions: EXAMPLE.instructions, timeout: '10m' }],
  },
);

export const CompleteHandoffBody = Type.Object(
  {
    success: Type.Boolean({ description: 'whether it is done what was asked' }),
    note: Type.Optional(
      Type.String({
        maxLength: 2048,
        pattern: `^${LINES}*$`,
        description: 'for the automation that asked',
      }),
    ),
  },
  {
    title: 'CompleteHandoff',
    additionalProperties: false,
    examples: [{ success: true, note: 'Signed in.' }],
  },
);

const modes = ShareMode.anyOf.map((mode) => mode.const);
const Mode = Words(modes, {
  title: 'ShareMode',
  examples: ['view'],
  description:
    'view: the screen is shown, and keys, pointer and clipboard are dropped; control: they work',
});

const shareFields = {
  id: Type.String({ examples: [EXAMPLE.share], description: 'no secret' }),
  mode: Mode,
  expires_at: Timestamp(EXAMPLE.end),
};

export const CreatedShare = Type.Object(
  {
    ...shareFields,
    url: Type.String({
      examples: [`${EXAMPLE.ticket}/#password=v8Xq2LmP`],
      description: 'the page with the screen; a secret, returned only once',
    }),
  },
  { title: 'CreatedShare' },
);

export const ShareList = Type.Object(
  {
    shares: Type.Array(
      Type.Object(
        {
          ...shareFields,
          created_at: Timestamp(EXAMPLE.at),
          created_by: Type.String({ examples: ['ada'] }),
          used: Type.Boolean({ examples: [true], description: 'whether it was opened' }),
          last_used_at: Nullable(Timestamp(EXAMPLE.later)),
        },
        { title: 'Share' },
      ),
    ),
  },
  { title: 'ShareList' },
);

export const RevokedShare = Type.Object(
  {
    message: Type.String({ examples: [`Share ${EXAMPLE.share} has been revoked.`] }),
    id: Type.String({ examples: [EXAMPLE.share] }),
  },
  { title: 'RevokedShare' },
);

export const CreateShareBody = Type.Object(
  { mode: Mode, expires_in: Duration },
  {
    title: 'CreateShare',
    additionalProperties: false,
    examples: [{ mode: 'view', expires_in: '1h' }],
  },
);

const SessionId = Type.String({ description: 'the session’s id' });
export const HandoffPath = Type.Object({
  id: SessionId,
  handoff_id: Type.String({ description: 'the hand-off’s id' }),
});
export const SharePath = Type.Object({
  id: SessionId,
  share_id: Type.String({ description: 'the share’s id' }),
});

/** A duration of a body's field in ms, or the rejection with what the client sent. */
export function durationIn(field: string, sent: unknown): number | Rejection {
  return parseDuration(sent) ?? reject('INVALID_DURATION', { duration: sent ?? null, field });
}

/** A hand-off as every answer has it. */
export function presentHandoff(
  { id: sessionId }: Pick<SessionState, 'id'>,
  handoff: HandoffState,
): Static<typeof Handoff> {
  const { id, status, instructions, requestedAt, requestedBy, expiresAt } = handoff;
  const { takenAt = null, takenBy = null, endedAt = null, note = null, success = null } = handoff;
  return {
    id,
    session_id: sessionId,
    status,
    instructions,
    requested_at: requestedAt,
    requested_by: requestedBy,
    expires_at: expiresAt,
    taken_at: takenAt,
    taken_by: takenBy,
    completed_at: status === 'completed' ? endedAt : null,
    note,
    success,
  };
}

/** A share in a list: its address is no part of it. */
export function presentShare({
  id,
  mode,
  expiresAt,
  createdAt,
  createdBy,
  lastUsedAt,
}: ShareState) {
  return {
    id,
    mode,
    expires_at: expiresAt,
    created_at: createdAt,
    created_by: createdBy,
    used: lastUsedAt !== undefined,
    last_used_at: lastUsedAt ?? null,
  };
}

/** The rejection of what needs a screen: a headless session has none. */
export function noScreen({ id, browser }: SessionState): Rejection | null {
  if (browser.headless !== true) return null;
  const message = 'A headless session has no screen that a person could see.';
  return reject('INVALID_REQUEST', { session_id: id, headless: true }, { message });
}
