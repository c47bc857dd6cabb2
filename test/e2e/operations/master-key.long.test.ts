/** The rotation of the master key as deploy/runbook.md has it, with a profile and a webhook. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bssWith } from '#test/support/clients/command-line.ts';
import { allOf, startShop } from '#test/support/clients/shop.ts';
import {
  onPage,
  reaches,
  startRealService,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { eventually } from '#test/support/service/service.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';

const [OLD, NEW] = ['tGm4Zk0vQe8RzjU1c7LwXb5HfAy2NpDs9KiJ', 'Zp1uTgqk2o9mWcXa7LrVb4HsEyJ6dN0fQw8x'];

let shop: Awaited<ReturnType<typeof startShop>>;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let service: RealService;
/** What the webhook's receiver knows. */
let secret = '';
let webhook = '';
let profile = '';

beforeAll(async () => {
  shop = await startShop();
  receiver = await startReceiver(() => secret);
  service = await startRealService({
    ...{ BROWSERS: 'process', POOL_MIN_IDLE: '0', MASTER_KEY: OLD, WEBHOOKS_ALLOW_PRIVATE: 'yes' },
  });
  const hook = { url: receiver.url, types: ['session.stopped'] };
  const made = await service.request('POST', '/api/webhooks', hook);
  [secret, webhook] = [made.body.secret, made.body.id];
  profile = (await service.request('POST', '/api/profiles', { name: 'shop' })).body.id;
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
  shop?.[Symbol.dispose]();
});

/** Runs a script in the shop, in a session with the profile; waits for the webhook of its end. */
async function inShop(save: boolean, path: string, script: string): Promise<unknown> {
  const answer = await service.request('POST', '/api/sessions', { profile: { id: profile, save } });
  expect([answer.status, answer.body.status]).toEqual([201, 'active']);
  const session: CreatedSession = answer.body;
  const result = await onPage(session, async (page) => {
    await page.goto(shop.origin + path);
    return await page.evaluate(script);
  });
  await service.request('DELETE', `/api/sessions/${session.id}`);
  await reaches(service, session.id, 'stopped');
  await eventually(
    () => receiver.received.some(({ data }) => data.subject.includes(session.id)),
    'its end is delivered',
    60_000,
  );
  expect(receiver.refused).toEqual([]);
  return result;
}

async function startWith(MASTER_KEY: string): Promise<void> {
  await service.end('SIGTERM');
  await service.startAgain({ MASTER_KEY });
}

test('profiles and webhooks go on while the master key is rotated', async () => {
  expect(await inShop(true, '/log-in?as=ada', 'store("ada")')).toBe('stored');

  await startWith(`${NEW}\n${OLD}\n`);
  expect(await inShop(false, '/', 'known()')).toEqual(allOf('ada'));
  await eventually(
    async () => {
      const env = { DATA_DIR: service.dataDir, MASTER_KEY: `${NEW} ${OLD}` };
      const { stdout } = await bssWith(env, 'objects', 'keys', '--json');
      const rows = JSON.parse(stdout) as { is: string; archives: number }[];
      return rows.map(({ is, archives }) => `${is} ${archives}`).join() === 'current 1,older 0';
    },
    'the version is sealed with the new key',
    60_000,
  );
  const rotated = await service.request('POST', `/api/webhooks/${webhook}/rotate-secret`);
  expect(rotated.body.secret).not.toBe(secret);
  secret = rotated.body.secret;

  await startWith(NEW);
  expect(await inShop(false, '/', 'known()')).toEqual(allOf('ada'));
});
