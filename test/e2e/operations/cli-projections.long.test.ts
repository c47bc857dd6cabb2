import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectionId } from '#projections/projection.ts';
import { sessionView } from '#projections/session-view.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { bss, json } from '#test/support/clients/command-line.ts';

/** Each command is a process of its own. */
const views = projectionId(sessionView);
let service: RunningService;
let redis: Redis;
beforeAll(async () => {
  service = await startService();
  redis = new Redis(service.runtime.redis_url);
  for (let n = 0; n < 5; n += 1) await service.request('POST', '/api/sessions', {});
});
afterAll(async () => {
  redis.disconnect();
  await service[Symbol.asyncDispose]();
});

type Listed = { projection: string; views: number; behind: number; state: string };

test('read models are listed with their checkpoints', async () => {
  const listed = (await json(service, 'projections', 'list')) as Listed[];
  const found = listed.find(({ projection }) => projection === views);
  expect(found).toMatchObject({ views: 5, behind: 0, state: 'in use' });
  expect((await bss(service, 'projections', 'list')).stdout).toMatch(
    /session-view:v\d+ +5 .*in use/,
  );
});

test('an altered view is reported by verify and corrected by rebuild', async () => {
  const equal = await bss(service, 'projections', 'verify');
  expect([equal.code, equal.stdout.trimEnd().split('\n').at(-1)]).toEqual([0, 'equal']);
  const [key = ''] = await redis.hkeys(`${views}:views`);
  const text = (await redis.hget(`${views}:views`, key)) ?? '';
  await redis.hset(`${views}:views`, key, text.replace('"description":""', '"description":"x"'));

  for (const options of [['session-view'], ['--all', '--sample', '100']]) {
    const { code, stdout } = await bss(service, 'projections', 'verify', ...options);
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining(`${key}  description: stored "x", folded ""`),
    ]);
    expect(stdout.trimEnd()).toMatch(/\ndifferent: session-view:v\d+$/);
  }

  const rebuilt = await json(service, 'projections', 'rebuild', 'session-view');
  expect(rebuilt).toMatchObject([{ projection: views, dead_letters: 0 }]);
  expect(await json(service, 'projections', 'verify')).toMatchObject({ equal: true });
  const all = await bss(service, 'projections', 'rebuild', '--all');
  expect([all.code, all.stdout.trimEnd().split('\n').length]).toEqual([0, 6]);
  expect(await json(service, 'projections', 'verify', '--all')).toMatchObject({ equal: true });
});

test('an unknown name, and SEQ together with --all, are usage errors', async () => {
  for (const args of [
    ['projections', 'verify', 'none'],
    ['dead-letters', 'retry', '7', '--all'],
  ])
    expect((await bss(service, ...args)).code).toBe(2);
});

test('an unreadable event is a dead letter until it is skipped, also after FLUSHALL', async () => {
  const { host: servers, username: user, password: pass } = new URL(service.runtime.nats_url);
  const nats = await connect({ servers, user, pass });
  const { seq } = (await nats.request('evt.dev.session.broken.queued', '{"not":"an event"}')).json<{
    seq: number;
  }>();
  await nats.close();
  const failedBy = async () => {
    const listed = (await json(service, 'dead-letters', 'list')) as {
      sequence: number;
      failed_by: string;
    }[];
    return listed.filter(({ sequence }) => sequence === seq).map((one) => one.failed_by);
  };
  await eventually(async () => (await failedBy()).includes(views), 'it is a dead letter');
  expect((await service.request('POST', '/api/sessions', {})).status).toBe(201);
  await redis.flushall();
  await eventually(
    async () => Number(await redis.get(`${views}:checkpoint`)) >= seq,
    'it is folded',
  );
  expect(await failedBy()).toContain(views);

  const shown = await bss(service, 'dead-letters', 'show', `${seq}`);
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('ce-dataschema')]);
  const retried = await bss(service, 'dead-letters', 'retry', `${seq}`);
  expect([retried.code, retried.stdout]).toEqual([
    1,
    expect.stringContaining('still a dead letter'),
  ]);
  expect((await bss(service, 'dead-letters', 'skip', `${seq}`)).code).toBe(0);
  expect(await failedBy()).toEqual([]);
  expect((await bss(service, 'dead-letters', 'skip', `${seq}`)).code).toBe(1);
  await redis.flushall();
  await eventually(
    async () => Number(await redis.get(`${views}:checkpoint`)) >= seq,
    'it is folded',
  );
  expect(await failedBy()).toEqual([]);
  for (const name of ['dead-letters', 'parked'])
    expect((await bss(service, name, 'list')).stdout).toBe('there is no dead letter\n');
  expect(await json(service, 'projections', 'verify')).toMatchObject({ equal: true });
});
