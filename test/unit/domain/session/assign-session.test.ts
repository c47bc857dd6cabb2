import { describe, it } from 'vitest';
import { session } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const { given } = session;
const assign = { type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' } as const;

describe('a server that launches a browser for a session', () => {
  it('is recorded as its assignment', () => {
    given(requested()).when(assign).then(assigned());
    given(requested(), assigned()).stateIs({
      status: 'creating',
      assignment: { workloadId: 'wl_1', serverId: 'srv_1' },
    });
  });

  it('removes it from the queue', () => {
    given(requested(), queued).when(assign).then(assigned());
    given(requested(), queued, assigned()).stateIs({ status: 'creating' });
  });

  it('has no effect when it reports that again', () => {
    given(requested(), assigned()).when(assign).thenNothing();
  });

  it('may try again with another browser', () => {
    const again = { ...assign, workloadId: 'wl_2' };
    given(requested(), assigned()).when(again).then(assigned('wl_2'));
  });

  it('has no effect if another server has accepted the session', () => {
    const other = { ...assign, workloadId: 'wl_2', serverId: 'srv_2' };
    given(requested(), assigned()).when(other).thenNothing();
  });

  it('comes too late for a session that is active or has ended', () => {
    given(requested(), activated()).when(assign).thenNothing();
    given(requested(), activated(), stopRequested()).when(assign).thenNothing();
    given(requested(), stopRequested(), stopped(T0)).when(assign).thenNothing();
  });
});
