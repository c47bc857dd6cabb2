import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { newId } from '#src/kernel/ids.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { openRaw, rawRequest, type RawConnection } from '#test/support/clients/raw-http.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** The time of an answer does not tell whether an id is another organization's session or none. */

const TRIES = 1_000;
const IDS = 40;
/** Tries that are not measured: each id five times. */
const WARM_TRIES = 5 * IDS;
let service: RunningService;
let log: ServiceLog;
let owner: ApiClient;
let ownersKey: string;
let strangersKey: string;
let connection: RawConnection;
const theirs: string[] = [];
const unknown = Array.from({ length: IDS }, () => newId('ses'));

beforeAll(async () => {
  service = await startService({
    TIERS: JSON.stringify({ max: { requests_per_minute: 10_000_000 } }),
    POOL_MAX: '60',
    LOG_LEVEL: 'warn',
  });
  const anybody = await connectApi(service.apiUrl);
  log = await openLog(service);
  for (const id of ['acme', 'umbrella']) await log.register(id, 'max', 1_000_000);
  ownersKey = await log.issueKey('acme', 'owner', anybody);
  strangersKey = await log.issueKey('umbrella', 'owner', anybody);
  owner = anybody.as(ownersKey);
  for (let made = 0; made < IDS; made += 1) theirs.push((await owner.create()).body.id);
  connection = await openRaw(service.apiUrl);
});
afterAll(async () => {
  connection?.[Symbol.dispose]();
  await log?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

/** Milliseconds of each kind's requests, which are sent one by one in random order. */
async function measure(
  requests: readonly [first: (id: string) => string, second: (id: string) => string],
  ids: readonly [first: readonly string[], second: readonly string[]],
  status: string,
  tries = TRIES,
): Promise<[number[], number[]]> {
  const times: [number[], number[]] = [[], []];
  const left: [number, number] = [tries, tries];
  while (left[0] + left[1] > 0) {
    const kind = Math.random() * (left[0] + left[1]) < left[0] ? 0 : 1;
    left[kind] -= 1;
    const request = requests[kind](ids[kind][left[kind] % IDS] ?? '');
    const begin = performance.now();
    const answer = await connection.ask(request);
    times[kind].push(performance.now() - begin);
    if (!answer.startsWith(`HTTP/1.1 ${status} `)) throw new Error(answer);
  }
  return times;
}

/**
 * The share of pairs in which the first kind is slower: 0.5 if the kinds do not differ, with a
 * standard deviation of 0.013 (Mann and Whitney's U over 1,000 requests each).
 */
function slowerShare([first, second]: [number[], number[]]): number {
  const all = [
    ...first.map((ms) => ({ ms, isFirst: true })),
    ...second.map((ms) => ({ ms, isFirst: false })),
  ].toSorted((a, b) => a.ms - b.ms);
  let seconds = 0;
  let slower = 0;
  for (const { isFirst } of all)
    if (isFirst) slower += seconds;
    else seconds += 1;
  return slower / (first.length * second.length);
}

/** Five standard deviations: one run in a million fails by chance. */
const STRAYS_MAX = 0.065;

const routes: [method: string, path: string, body?: unknown][] = [
  ['GET', ''],
  ['GET', '/access'],
  ['GET', '/events'],
  ['POST', '/extend', { duration: '1h' }],
  ['DELETE', ''],
];

describe('over 1,000 requests each, in random order', () => {
  test.each(routes)(
    '%s /api/sessions/{id}%s takes as long for another organization’s id as for an unknown one',
    async (method, path, body) => {
      const request = (id: string) =>
        rawRequest(method, `/api/sessions/${id}${path}`, { key: strangersKey, body });
      await measure([request, request], [theirs, unknown], '404', WARM_TRIES);
      const share = slowerShare(await measure([request, request], [theirs, unknown], '404'));
      expect(Math.abs(share - 0.5)).toBeLessThan(STRAYS_MAX);
    },
  );

  it('would show a difference: an own session and an unknown id differ', async () => {
    const request = (id: string) =>
      rawRequest('GET', `/api/sessions/${id}`, { key: ownersKey, headers: {} });
    const asOwner = await measureStatuses(request);
    expect(Math.abs(slowerShare(asOwner) - 0.5)).toBeGreaterThan(2 * STRAYS_MAX);
  });
});

/** Own sessions beside unknown ids: 200 from the read model, 404 from the event store. */
async function measureStatuses(request: (id: string) => string): Promise<[number[], number[]]> {
  const times: [number[], number[]] = [[], []];
  for (let at = 0; at < 2 * TRIES; at += 1) {
    const kind = at % 2 === 0 ? 0 : 1;
    const begin = performance.now();
    await connection.ask(request((kind === 0 ? theirs : unknown)[at % IDS] ?? ''));
    times[kind].push(performance.now() - begin);
  }
  return times;
}
