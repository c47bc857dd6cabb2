import type { Static } from 'typebox';
import type * as schemas from '#src/roles/api/schemas/sessions.ts';
import { followEvents } from './follow-events.ts';
import type { CallOptions, Requester } from './requester.ts';

export type Handoff = NonNullable<Static<typeof schemas.Session>['handoff']>;
/** What a person is asked; `timeout` as `10m`, which is the default. */
export type RequestHandoff = { instructions: string; timeout?: string };
export type HandoffOptions = CallOptions & {
  /** Idempotency key; default: a random UUID. */
  idempotencyKey?: string;
  /** Called once the request is stored, with the id by which a person can take it. */
  onRequested?: (handoff: Handoff) => void;
};

/** How much longer than its timeout a hand-off is waited for: a timer may be late. */
const GRACE_MS = 30_000;

/**
 * Asks a person for help, and waits until the person gives the browser back, or until that is over.
 * The wait goes over lost connections: it ends with the hand-off's time. The signal ends the wait
 * alone: a person may still take the hand-off until its time is over.
 * @param path of the session
 */
export async function requestHandoff(
  requester: Requester,
  path: string,
  asked: RequestHandoff,
  { idempotencyKey = crypto.randomUUID(), onRequested, ...options }: HandoffOptions = {},
): Promise<Handoff> {
  const handoff = await requester.json<Handoff>({
    method: 'POST',
    path: `${path}/handoffs`,
    body: asked,
    ...options,
    idempotencyKey,
  });
  onRequested?.(handoff);
  await untilOver(requester, path, handoff, options.signal);
  const own = `${path}/handoffs/${encodeURIComponent(handoff.id)}`;
  const now = await requester.json<Handoff>({ method: 'GET', path: own, ...options });
  // Its time is over, though no event has said so yet.
  return isOver(now) ? now : { ...now, status: 'expired' };
}

async function untilOver(
  requester: Requester,
  path: string,
  handoff: Handoff,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (isOver(handoff)) return;
  const begun = new Date(handoff.requested_at);
  const late = AbortSignal.timeout(Date.parse(handoff.expires_at) - begun.getTime() + GRACE_MS);
  const either = signal === undefined ? late : AbortSignal.any([late, signal]);
  const events = followEvents(
    requester,
    { path: `${path}/events`, isOneSession: true },
    { from: begun, signal: either, triesMax: Infinity },
  );
  try {
    for await (const { type, data } of events) {
      if (type === 'session.stopped' || type === 'session.failed') return;
      const isEnd = type === 'session.handoff-completed' || type === 'session.handoff-expired';
      if (isEnd && data.handoffId === handoff.id) return;
    }
  } catch (error) {
    if (!late.aborted || signal?.aborted === true) throw error;
  }
}

function isOver({ status }: Handoff): boolean {
  return status === 'completed' || status === 'expired';
}
