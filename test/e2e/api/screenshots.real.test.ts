import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { readFiles } from '#test/support/service/leak-surfaces.ts';
import { scrape } from '#test/support/service/metrics-text.ts';
import { eventually } from '#test/support/service/service.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { startTwoApis } from '#test/support/service/two-processes.ts';

/** Screenshots by two API processes, of browsers that one of them runs. */

let apis: Awaited<ReturnType<typeof startTwoApis>>;
let log: ServiceLog;
/** The owner of `acme` at both processes. */
let owners: [ApiClient, ApiClient];
let anybody: ApiClient;

beforeAll(async () => {
  const tiers = { pro: { requests_per_minute: 1_000_000 } };
  apis = await startTwoApis({ TIERS: JSON.stringify(tiers), POOL_MAX: '6' });
  anybody = await connectApi(apis.first.apiUrl);
  log = await openLog(apis.first);
  owners = await organization('acme');
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await apis?.[Symbol.asyncDispose]();
});

async function organization(id: string): Promise<[ApiClient, ApiClient]> {
  await log.register(id, 'pro', 10_000);
  const key = await log.issueKey(id, 'owner', anybody);
  const second = (await connectApi(apis.second.apiUrl)).as(key);
  await eventually(async () => (await second.get('/api/status')).status === 200, 'it is taken');
  return [anybody.as(key), second];
}

const pathOf = (id: string) => `/api/sessions/${id}/screenshot?max_width=320`;
const made = async () =>
  (await scrape(apis.first.apiUrl)).value('bss_screenshot_seconds_count', { outcome: 'made' }) ?? 0;

describe('a screenshot', () => {
  it('is made once a second, however many ask at however many processes', async () => {
    const { id } = (await owners[0].create()).body;
    await eventually(async () => (await owners[1].get(pathOf(id))).status === 200, 'both know it');
    const [before, begunAt] = [await made(), performance.now()];
    const tags = new Set<unknown>();
    for (let round = 0; performance.now() - begunAt < 2_500; round += 1) {
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          owners[(at + round) % 2 === 0 ? 0 : 1].get(pathOf(id)),
        ),
      );
      for (const { status, headers } of replies) {
        expect(status).toBe(200);
        tags.add(headers.etag);
      }
    }
    const seconds = (performance.now() - begunAt) / 1000;
    expect((await made()) - before).toBeLessThanOrEqual(Math.ceil(seconds) + 1);
    // A simulated page does not change.
    expect(tags.size).toBe(1);
    const headers = { 'if-none-match': String([...tags][0]) };
    expect((await owners[1].get(pathOf(id), { headers })).status).toBe(304);
    await owners[0].stop(id);
  });

  it('may be seen by a viewer, and by no other organization', async () => {
    const { id } = (await owners[0].create()).body;
    const viewer = anybody.as(await log.issueKey('acme', 'viewer', anybody));
    expect((await viewer.get(pathOf(id))).status).toBe(200);
    for (const stranger of await organization('other'))
      expect(errorOf(await stranger.get(pathOf(id)))).toBe('404 SESSION_NOT_FOUND');
    await owners[0].stop(id);
    expect(errorOf(await viewer.get(pathOf(id)))).toBe('410 SESSION_ENDED');
  });

  it('is in no event and in no log', async () => {
    const { id } = (await owners[0].create()).body;
    const { body } = await owners[0].get(pathOf(id));
    const bytes = body as Buffer;
    expect(bytes.length).toBeGreaterThan(500);
    // From its middle: all have the same head.
    const part = bytes.subarray(bytes.length - 300, bytes.length - 200);
    const forms = [part.toString('latin1'), ...base64Of(part)];
    const texts = [apis.first.output(), apis.second.output()];
    const files = await readFiles(apis.first.dataDir, []);
    texts.push(...files.map(({ text }) => text));
    expect(texts.some((text) => text.includes(id))).toBe(true);
    for (const text of texts) for (const form of forms) expect(text.includes(form)).toBe(false);
    await owners[0].stop(id);
  });
});

/** What the bytes are in base64, wherever they begin. */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].map((skipped) => bytes.subarray(skipped).toString('base64').slice(0, 100));
}

test('of a session whose server is gone there is none, and the answer has the reason', async () => {
  const { id } = (await owners[1].create()).body;
  expect((await owners[1].get(pathOf(id))).status).toBe(200);
  await apis.first.end('SIGKILL');
  const reply = await owners[1].get(pathOf(id));
  expect(errorOf(reply)).toBe('503 UNAVAILABLE');
});
