import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bss, json } from '#test/support/clients/command-line.ts';
import { startTraffic } from '#test/support/load/persistent-traffic.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * The whole service archives each second what is older than a second, while clients create and stop
 * sessions of simulated browsers, and is killed with -9 again and again.
 */

const KILLS = soakOr(4, 2);
/** Creates after the last kill: CI has more of them, so that two kills fill the archive, too. */
const CREATED_AFTER = soakOr(20, 80);
const ENV = {
  RETAIN_ENDED: '1s',
  ARCHIVE_EVERY: '1s',
  POOL_MIN_IDLE: '0',
  POOL_MAX: '3000',
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 } }),
};
const WITHIN_MS = 120_000;

type Status = { segments: number; last_sequence: number };

test(`a service that is killed ${KILLS} times while it archives loses no session and no event`, async () => {
  await using service = await startService(ENV);
  const traffic = startTraffic(service);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await traffic.goesOn(20 + Math.floor(Math.random() * 60), WITHIN_MS);
    await service.end('SIGKILL');
    await service.startAgain();
  }
  await traffic.goesOn(CREATED_AFTER, WITHIN_MS);
  await traffic.finish();
  await eventually(async () => {
    const status = (await json(service, 'archive', 'status')) as Status;
    return status.segments > 1 && status.last_sequence > 1_000;
  }, 'most is archived');

  expect(traffic.created.size).toBeGreaterThan(20 * KILLS);
  for (const id of traffic.stopped)
    expect(['stopped', 'failed']).toContain((await sessionOf(service, id)).status);
  const records = await exported(service);
  expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, at) => at + 1));
  expect(records.length).toBeGreaterThan(1_000);
  const ends = new Map(records.flatMap(({ subject }) => endOf(subject)));
  expect(ends.size).toBeGreaterThan(traffic.stopped.size - 1);
  for (const [name, id] of traffic.created) {
    const session = await sessionOf(service, id);
    expect([id, session.session_name]).toEqual([id, name]);
    if (ends.has(id)) expect([id, session.status]).toEqual([id, ends.get(id)]);
  }
  expect(await json(service, 'archive', 'verify')).toMatchObject({ agrees: true });
  expect(await bss(service, 'audit', 'ledger')).toMatchObject({ code: 0 });
  expect(await bss(service, 'projections', 'verify')).toMatchObject({ code: 0 });
});

/** A stop that was acknowledged comes to its end. */
async function sessionOf(service: RunningService, id: string) {
  return eventually(
    async () => {
      const { status, body } = await service.request('GET', `/api/sessions/${id}`);
      return status === 200 && body.status !== 'stopping' && body;
    },
    `the session ${id} is found`,
    60_000,
  );
}

/** The session that ended with an event, and the status that it has since. */
function endOf(subject: string): [string, string][] {
  const [, , kind, id = '', event = ''] = subject.split('.');
  return kind === 'session' && ['stopped', 'failed'].includes(event) ? [[id, event]] : [];
}

type Line = { record?: { sequence: number; subject: string } };

/** The records of an export of all that ever happened. */
async function exported(service: RunningService) {
  const file = join(service.dataDir, 'audit.ndjson');
  await json(service, 'audit', 'export', '--out', file);
  const lines = (await readFile(file, 'utf8')).split('\n').filter(Boolean);
  return lines.flatMap((line) => (JSON.parse(line) as Line).record ?? []);
}
