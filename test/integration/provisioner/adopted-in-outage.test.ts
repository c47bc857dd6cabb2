import { expect, test } from 'vitest';
import { Unavailable } from '#src/kernel/errors.ts';
import type { BlackBoxes } from '#src/features/black-box/black-boxes.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { createSession } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';
import { openFleet } from '#test/support/service/fleet.ts';

/** An event store that does not answer while the browser of an earlier process is adopted. */

const any = { browser: { viewport: null, locale: null, timezone: null } };

test('the recording of an adopted session goes on once the event store answers', async () => {
  await using fleet = await openFleet();
  const recordings = {
    objects: createMemoryObjectStore(),
    maxBytes: 1024 ** 2,
    times: { segmentMs: 50, reportEveryMs: 50 },
  };
  const first = await fleet.join({ recordings });
  const id = 'ses_recorded';
  const asked = { ...any, record: true, now: Date.now() } as const;
  await fleet.sendSessionCommand(id, createSession(asked));
  await fleet.waitForStatus(id, 'active');
  first.kill();

  let failures = 0;
  fleet.unreadable.set(id, () => ((failures += 1) <= 2 ? new Unavailable('event-log') : null));
  await using _ = await fleet.join({ id: first.id, machine: first.machine, recordings });
  expect(failures).toBeGreaterThan(2);
  const ref = { kind: 'session', organizationId: 'acme', id } as const;
  await eventually(async () => {
    const history = await Array.fromAsync(fleet.context.eventStore.history<'session'>(ref));
    const gaps = history.flatMap((event) =>
      event.type === 'session.recording-stored' ? event.data.gaps : [],
    );
    return gaps.some(({ reason }) => reason === 'restart');
  }, 'the gap of the restart is recorded');
});

test('a browser that crashes while its session cannot be read is not observed from then on', async () => {
  await using fleet = await openFleet();
  const first = await fleet.join();
  const id = await fleet.create();
  const { workload } = await fleet.waitForStatus(id, 'active');
  first.kill();

  const calls: string[] = [];
  const blackBoxes: BlackBoxes = {
    begin: (_, session) => void calls.push(session.id),
    follow: () => undefined,
    async end(workloadId) {
      if (workloadId === workload?.workloadId) calls.push('end');
      return null;
    },
  };
  let failures = 0;
  // The reads of the adoption, and of the report on the crash, which is tried again later.
  fleet.unreadable.set(id, () => {
    failures += 1;
    if (failures === 1) first.machine.crash(workload?.workloadId ?? '');
    return failures > 2 ? null : new Unavailable('event-log');
  });
  await using _ = await fleet.join({ id: first.id, machine: first.machine, blackBoxes });
  const { endedReason } = await fleet.waitForStatus(id, 'failed');
  expect(endedReason).toBe('browser_crashed');
  expect(calls).toEqual(['end']);
});
