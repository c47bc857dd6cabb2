import { Type, type Static } from 'typebox';
import { Moment, UserId } from './fields.ts';

const HandoffId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'the hand-off, unique in its session',
});
const Instructions = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'what the person is asked to do',
});
const Success = Type.Boolean({ description: 'whether the person did what was asked' });
const Note = Type.String({ maxLength: 2048, description: 'what the person says about it' });

/** A hand-off: automation asks a person for help, waits, and goes on. */
export const handoffEvents = {
  'session.handoff-requested': Type.Object({
    handoffId: HandoffId,
    instructions: Instructions,
    by: UserId,
    at: Moment,
    expiresAt: Moment,
  }),
  'session.handoff-taken': Type.Object({ handoffId: HandoffId, by: UserId, at: Moment }),
  'session.handoff-completed': Type.Object({
    handoffId: HandoffId,
    by: UserId,
    at: Moment,
    success: Success,
    note: Note,
  }),
  'session.handoff-expired': Type.Object({ handoffId: HandoffId, at: Moment }),
};

/**
 * The session's last hand-off. While it is `taken`, the person alone steers the browser. The end of
 * the session also ends it, as `expired`.
 */
export const Handoff = Type.Object({
  id: HandoffId,
  status: Type.Union([
    Type.Literal('requested'),
    Type.Literal('taken'),
    Type.Literal('completed'),
    Type.Literal('expired'),
  ]),
  instructions: Instructions,
  requestedBy: UserId,
  requestedAt: Moment,
  expiresAt: Moment,
  takenBy: Type.Optional(UserId),
  takenAt: Type.Optional(Moment),
  endedAt: Type.Optional(Moment),
  success: Type.Optional(Success),
  note: Type.Optional(Note),
});
export type Handoff = Static<typeof Handoff>;
