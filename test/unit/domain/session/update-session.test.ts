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

  it('bounds description and labels together, whichever of them changes', () => {
    const description = 'x'.repeat(1_024);
    const long = Object.fromEntries(
      Array.from({ length: 9 }, (_, at) => [`label-${at}`, 'y'.repeat(128)]),
    );
    given(requested({ description }))
      .when({ type: 'UpdateSession', labels: long })
      .thenRejected('INVALID_REQUEST', {
        field: 'labels',
        bytes: { description: 1_024, labels: 1_215 },
        max_bytes: 2_048,
      });
    given(requested({ description, labels: long }))
      .when({ type: 'UpdateSession', name: 'Checkout' })
      .then({ type: 'session.updated', data: { name: 'Checkout' } });
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
