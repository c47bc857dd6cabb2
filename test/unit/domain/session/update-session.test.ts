import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import { activated, requested, stopRequested } from '#test/support/examples.ts';

const { given } = session;
const labels = { team: 'shop' };

describe('updating a session', () => {
  it('changes what differs and keeps the rest', () => {
    const updated = { type: 'session.updated', data: { name: 'Checkout' } } as const;
    given(requested({ labels }), activated())
      .when({ type: 'UpdateSession', name: 'Checkout', labels: { team: 'shop' } })
      .then(updated);
    given(requested({ labels }), updated).stateIs({ name: 'Checkout', labels });
  });

  it('replaces all labels', () => {
    const updated = { type: 'session.updated', data: { labels: { run: '2' } } } as const;
    given(requested({ labels }))
      .when({ type: 'UpdateSession', labels: { run: '2' } })
      .then(updated);
    given(requested({ labels }), updated).stateIs({ labels: { run: '2' } });
  });

  it('records nothing if nothing differs', () => {
    given(requested({ labels })).when({ type: 'UpdateSession', labels }).thenNothing();
  });

  it('is refused once the session ends', () => {
    given(requested(), activated(), stopRequested())
      .when({ type: 'UpdateSession', name: 'Checkout' })
      .thenRejected('SESSION_ENDED', {
        session_id: 'ses_1',
        status: 'stopping',
        ended_reason: 'user',
      });
  });
});
