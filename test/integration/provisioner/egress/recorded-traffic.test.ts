import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import { createSession } from '#test/support/examples.ts';
import { openFleet } from '#test/support/service/fleet.ts';

/** The options of any idle browser. */
const any = { browser: { viewport: null, locale: null, timezone: null } };
const egress = { allow: ['example.com'], deny: [] };

test('what a browser was refused is recorded at the end of its session, before that', async () => {
  await using fleet = await openFleet();
  await using machine = await createSimulatedBrowsers({ launchMs: 5, failRate: 0 });
  const doors = new Map<string, NonNullable<BrowserSpec['egress']>>();
  const launch = (spec: BrowserSpec) => {
    if (spec.egress !== undefined) doors.set(spec.workloadId, spec.egress);
    return machine.launch(spec);
  };
  await using _ = await fleet.join({ browsers: { ...machine, launch } });
  const now = Date.now();
  await fleet.sendSessionCommand('ses_held', createSession({ ...any, egress, now }));
  const { workload } = await fleet.waitForStatus('ses_held', 'active');
  expect(workload?.egress).toBe('simulated');
  const door = doors.get(workload?.workloadId ?? '');
  if (door === undefined) throw new Error('it was launched without a proxy');
  const port = await door.listen(async () => true);
  const asked = request({ port, path: 'http://denied.example.com/' }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  expect(answer.resume().statusCode).toBe(403);

  await fleet.sendSessionCommand('ses_held', {
    type: 'StopSession',
    reason: 'user',
    now: Date.now(),
  });
  const { egressTraffic } = await fleet.waitForStatus('ses_held', 'stopped');
  expect(egressTraffic?.hosts).toEqual([
    {
      ...{ host: 'denied.example.com', connections: 0, bytesSent: 0, bytesReceived: 0 },
      ...{ refused: 1, lastRefusal: 'not_allowed' },
    },
  ]);
  expect(door.closed.aborted).toBe(true);

  // No other session gets a browser with rules, and none of these a proxy.
  await fleet.sendSessionCommand('ses_free', createSession({ ...any, now: Date.now() }));
  const free = await fleet.waitForStatus('ses_free', 'active');
  expect(free.workload?.egress).toBeUndefined();
  expect(doors.has(free.workload?.workloadId ?? '')).toBe(false);
  await fleet.sendSessionCommand('ses_free', {
    type: 'StopSession',
    reason: 'user',
    now: Date.now(),
  });
  expect(await fleet.waitForStatus('ses_free', 'stopped')).not.toHaveProperty('egressTraffic');
});
