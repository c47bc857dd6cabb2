import { Type, type Static } from 'typebox';
import { Moment, UserId } from './fields.ts';

/** What the holder of a share may do: watch the screen, or also use keyboard and pointer. */
export const ShareMode = Type.Union([Type.Literal('view'), Type.Literal('control')], {
  description: 'view: the screen is shown; control: keyboard, pointer and clipboard also work',
});
export type ShareMode = Static<typeof ShareMode>;

/** Shares that a session may have at a time: its state carries them. */
export const sharesMax = 16;

const ShareId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'the share, unique in its session; no secret',
});

/** An address of a session's screen for others, until it expires or is revoked. */
export const shareEvents = {
  'session.share-created': Type.Object({
    shareId: ShareId,
    mode: ShareMode,
    by: UserId,
    at: Moment,
    expiresAt: Moment,
  }),
  'session.share-used': Type.Object({ shareId: ShareId, at: Moment }),
  'session.share-revoked': Type.Object({ shareId: ShareId, by: UserId, at: Moment }),
};

/** A share that is not revoked; it may have expired. */
export const Share = Type.Object({
  id: ShareId,
  mode: ShareMode,
  createdBy: UserId,
  createdAt: Moment,
  expiresAt: Moment,
  lastUsedAt: Type.Optional(Moment),
});
export type Share = Static<typeof Share>;
