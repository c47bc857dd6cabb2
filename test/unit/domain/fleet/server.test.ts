import { describe, it } from 'vitest';
import type { ServerEvent } from '#events/server.ts';
import { server } from '#test/support/given-when-then.ts';
import { resized } from '#test/support/examples.ts';

const { given } = server;
const place = { ip: '10.0.0.7', browsers: 'docker', poolMax: 4 } as const;
const joined: ServerEvent = { type: 'server.joined', data: place };
const draining: ServerEvent = { type: 'server.draining', data: {} };
const drained: ServerEvent = { type: 'server.drained', data: {} };
const undrained: ServerEvent = { type: 'server.undrained', data: {} };
const left: ServerEvent = { type: 'server.left', data: {} };
const lost: ServerEvent = { type: 'server.lost', data: {} };
const join = { type: 'Join', ...place } as const;

describe('a server', () => {
  it('joins, drains and leaves', () => {
    given().when(join).then(joined);
    given(joined).when({ type: 'Drain' }).then(draining);
    given(joined, draining).when({ type: 'Leave' }).then(left);
    given(joined).stateIs({ id: 'srv_1', ip: '10.0.0.7', poolMax: 4, status: 'live' });
    given(joined, draining).stateIs({ status: 'draining' });
    given(joined, draining, left).stateIs({ status: 'left' });
  });

  it('that restarts keeps its state, and may still be lost', () => {
    const restarting: ServerEvent = { type: 'server.restarting', data: {} };
    given(joined).when({ type: 'Restart' }).then(restarting);
    given(joined, draining, restarting).stateIs({ status: 'draining' });
    given(joined, restarting).when({ type: 'ReportLost' }).then(lost);
    given(joined, left).when({ type: 'Restart' }).thenNothing();
  });

  it('is lost, draining or not', () => {
    given(joined).when({ type: 'ReportLost' }).then(lost);
    given(joined, draining).when({ type: 'ReportLost' }).then(lost);
    given(joined, lost).stateIs({ status: 'lost' });
  });

  it('joins again at each start, with its capacity at that time', () => {
    const bigger: ServerEvent = { type: 'server.joined', data: { ...place, poolMax: 8 } };
    for (const end of [left, lost, undrained]) {
      given(joined, end)
        .when({ ...join, poolMax: 8 })
        .then(bigger);
      given(joined, end, bigger).stateIs({ status: 'live', poolMax: 8 });
    }
  });

  it('tells what its browsers are launched from, and each change of it once', () => {
    const browser = { version: '150.0.7871.100', builtAt: '2026-11-10T00:00:00.000Z' };
    const newer = { version: '151.0.7900.12', builtAt: '2026-11-20T00:00:00.000Z' };
    const withBrowser: ServerEvent = { type: 'server.joined', data: { ...place, browser } };
    const updated: ServerEvent = { type: 'server.browser-updated', data: newer };
    given()
      .when({ ...join, browser })
      .then(withBrowser);
    given(withBrowser).stateIs({ browser });
    given(withBrowser)
      .when({ type: 'UpdateBrowser', ...newer })
      .then(updated);
    given(withBrowser, updated).stateIs({ status: 'live', browser: newer });
    given(withBrowser, updated)
      .when({ type: 'UpdateBrowser', ...newer })
      .thenNothing();
    given(withBrowser, left)
      .when({ type: 'UpdateBrowser', ...newer })
      .thenNothing();
  });

  it('tells whether it enforces egress rules, and each change of it once', () => {
    const browser = { version: '150.0.7871.100', builtAt: '2026-11-10T00:00:00.000Z' };
    const able: ServerEvent = {
      type: 'server.joined',
      data: { ...place, browser, egress: 'network' },
    };
    const unable: ServerEvent = {
      type: 'server.browser-updated',
      data: { ...browser, egress: null },
    };
    const again: ServerEvent = {
      type: 'server.browser-updated',
      data: { ...browser, egress: 'network' },
    };
    const update = { type: 'UpdateBrowser', ...browser } as const;
    given(able)
      .when({ ...update, egress: 'network' })
      .thenNothing();
    given(able)
      .when({ ...update, egress: null })
      .then(unable);
    given(able, unable)
      .when({ ...update, egress: null })
      .thenNothing();
    given(able, unable)
      .when({ ...update, egress: 'network' })
      .then(again);
    given(able, unable, again).stateIs({ browser, egress: 'network' });
    // A record of an earlier version says nothing of them.
    const newer: ServerEvent = { type: 'server.browser-updated', data: { version: '151.0.1' } };
    given(able, newer).stateIs({ browser: { version: '151.0.1' }, egress: 'network' });
    given(able, unable, newer).when({ type: 'Drain' }).then(draining);
  });

  it('drains once, across restarts, until it is undrained', () => {
    given(joined, draining).when({ type: 'Drain' }).thenNothing();
    given(joined, draining, drained).when({ type: 'Drain' }).thenNothing();
    given(joined, draining).when(join).then(joined, draining);
    given(joined, draining, drained).when(join).then(joined, draining);
    given(joined, draining).when({ type: 'Undrain' }).then(undrained);
    given(joined, draining, drained).when({ type: 'Undrain' }).then(undrained);
    given(joined).when({ type: 'Undrain' }).thenNothing();
    given(joined, draining, drained, undrained).stateIs({ status: 'live' });
  });

  it('has drained when it has no browser left', () => {
    given(joined, draining).when({ type: 'ReportDrained' }).then(drained);
    given(joined, draining, drained).stateIs({ status: 'drained' });
    given(joined, draining, drained).when({ type: 'ReportDrained' }).thenNothing();
    // The operator undrained it first.
    given(joined, draining, undrained).when({ type: 'ReportDrained' }).thenNothing();
    given(joined).when({ type: 'ReportDrained' }).thenNothing();
  });

  it('carries its pool’s target and its leaks until it joins again', () => {
    const { decision } = resized;
    given(joined)
      .when({ type: 'ResizePool', ...resized })
      .then({ type: 'server.pool-resized', data: resized });
    given(joined, { type: 'server.pool-resized', data: resized }).stateIs({
      pool: { target: decision.target, limitedBy: decision.limitedBy },
    });
    const found = {
      ...{ adopted: 0, stopped: 0, failed: 0, corrected: 0 },
      leaks: { browsers: 1, sessions: 2 },
    };
    given(joined)
      .when({ type: 'ReportReconciled', ...found })
      .then({ type: 'server.reconciled', data: found });
    given(joined, { type: 'server.reconciled', data: found }).stateIs({ leaks: found.leaks });
  });

  it('that has left or was lost cannot leave, drain or be lost again', () => {
    for (const end of [left, lost])
      for (const type of ['Drain', 'Undrain', 'ReportDrained', 'Leave', 'ReportLost'] as const)
        given(joined, end).when({ type }).thenNothing();
  });

  it('that never joined reports no change', () => {
    for (const type of ['Drain', 'Undrain', 'ReportDrained', 'Leave', 'ReportLost'] as const)
      given().when({ type }).thenNothing();
  });
});
