import { describe, expect, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  failed,
  handedOff,
  iso,
  MINUTE,
  queued,
  requested,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const [asked, taken, completed] = handedOff;
const at = T0 + 8 * MINUTE;

function request(handoffId: string, now = T0 + 6 * MINUTE) {
  const instructions = 'Please sign in to the shop.';
  const timeoutMs = 10 * MINUTE;
  return { type: 'RequestHandoff', handoffId, instructions, timeoutMs, by: 'user_1', now } as const;
}
function take(by: string, now = T0 + 7 * MINUTE) {
  return { type: 'TakeHandoff', handoffId: 'hof_1', by, now } as const;
}
function complete(by: string, now = at) {
  const said = { success: true, note: 'Signed in.' };
  return { type: 'CompleteHandoff', handoffId: 'hof_1', by, ...said, now } as const;
}
const expired = (now: number) =>
  ({ type: 'session.handoff-expired', data: { handoffId: 'hof_1', at: iso(now) } }) as const;
function conflict(status: string, takenBy: string | null) {
  const context = { session_id: 'ses_1', handoff_id: 'hof_1', status, taken_by: takenBy };
  return ['HANDOFF_CONFLICT', context] as const;
}

describe('a hand-off', () => {
  it('is requested, taken by a person and given back', () => {
    given(requested(), activated()).when(request('hof_1')).then(asked);
    given(requested(), activated(), asked).when(take('user_2')).then(taken);
    given(requested(), activated(), asked, taken).when(complete('user_2')).then(completed);
    given(requested(), activated(), asked, taken, completed).stateIs({
      handoff: {
        id: 'hof_1',
        status: 'completed',
        instructions: 'Please sign in to the shop.',
        requestedBy: 'user_1',
        requestedAt: iso(T0 + 6 * MINUTE),
        expiresAt: iso(T0 + 16 * MINUTE),
        takenBy: 'user_2',
        takenAt: iso(T0 + 7 * MINUTE),
        endedAt: iso(at),
        success: true,
        note: 'Signed in.',
      },
    });
  });

  it('is one person’s: no other person takes it or gives it back', () => {
    const held = given(requested(), activated(), asked, taken);
    held.when(take('user_3')).thenRejected(...conflict('taken', 'user_2'));
    held.when(complete('user_1')).thenRejected(...conflict('taken', 'user_2'));
    held.when(take('user_2')).thenNothing();
  });

  it('is completed by any member until it is taken', () => {
    given(requested(), activated(), asked)
      .when(complete('user_1'))
      .then({ ...completed, data: { ...completed.data, by: 'user_1' } });
  });

  it('is the only open one of its session', () => {
    given(requested(), activated(), asked)
      .when(request('hof_2'))
      .thenRejected(...conflict('requested', null));
    given(requested(), activated(), asked).when(request('hof_1')).thenNothing();
    given(requested(), activated(), asked, taken, completed)
      .when(request('hof_2'))
      .then({ ...asked, data: { ...asked.data, handoffId: 'hof_2' } });
  });

  it('expires once its time is up, also while a person holds it', () => {
    const end = T0 + 16 * MINUTE;
    for (const held of [given(requested(), activated(), asked), given(...toTaken)]) {
      held.when({ type: 'ExpireHandoff', now: end - 1 }).thenNothing();
      held.when({ type: 'ExpireHandoff', now: end }).then(expired(end));
    }
    given(...toTaken, completed)
      .when({ type: 'ExpireHandoff', now: end })
      .thenNothing();
  });

  it('can no longer be taken or completed once its time is up, although its timer is late', () => {
    const late = T0 + 17 * MINUTE;
    given(requested(), activated(), asked)
      .when(take('user_2', late))
      .thenRejected(...conflict('requested', null));
    given(...toTaken)
      .when(complete('user_2', late))
      .thenRejected(...conflict('taken', 'user_2'));
    given(requested(), activated(), asked)
      .when(request('hof_2', late))
      .then(expired(late), {
        type: 'session.handoff-requested',
        data: {
          ...asked.data,
          handoffId: 'hof_2',
          at: iso(late),
          expiresAt: iso(late + 10 * MINUTE),
        },
      });
  });

  it('ends with its session', () => {
    given(...toTaken, stopRequested()).stateIs({ handoff: ended });
    given(...toTaken, failed()).stateIs({ handoff: ended });
  });

  it('needs a session with a browser', () => {
    given(requested(), queued)
      .when(request('hof_1'))
      .thenRejected('SESSION_NOT_READY', { session_id: 'ses_1', status: 'queued' });
  });

  it('is not found by another id', () => {
    given(requested(), activated(), asked)
      .when({ ...take('user_2'), handoffId: 'hof_9' })
      .thenRejected('HANDOFF_NOT_FOUND', { session_id: 'ses_1', handoff_id: 'hof_9' });
  });
});

const toTaken = [requested(), activated(), asked, taken];
const ended = expect.objectContaining({ id: 'hof_1', takenBy: 'user_2', status: 'expired' });
