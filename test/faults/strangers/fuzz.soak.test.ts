import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenApiDocument } from '#src/api/docs/openapi-document.ts';
import {
  apiRequest,
  corrupted,
  frames,
  gatewayRequest,
  handshake,
  type Known,
} from '#test/support/fuzz/requests.ts';
import { createRandom, type Random } from '#test/support/fuzz/random.ts';
import { send, type Answered } from '#test/support/fuzz/sender.ts';
import { heldBytes, WITH_INSPECTOR } from '#test/support/load/heap.ts';
import { descendantsOf, stillRunning } from '#test/support/service/processes.ts';
import {
  createWarm,
  openCdp,
  openScreen,
  poolOf,
  startRealService,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * Requests that are nearly valid, at the whole service with a real browser. `FUZZ_SEED` repeats a
 * run; the seed is in the output of a failure.
 */
const SEED = Number(process.env['FUZZ_SEED'] ?? 14);
const REQUESTS = soakOr(100_000, 8_000);
const OPERATOR_TOKEN = 'operator-4711-token-of-the-tests';
/** Requests that are under way at once. */
const AT_ONCE = 32;
/** What is held after so many is compared with what is held at the end. */
const WARM = soakOr(20_000, 3_000);
const GROWTH_MAX_BYTES = 16 * 1024 * 1024;
/** Errors of a status from 500 on that are documented answers to a request. */
const SPECIFIED = ['NO_SERVERS_AVAILABLE', 'UNAVAILABLE', 'DEBUGGER_PORTS_OFF'];

let service: RealService;
let session: CreatedSession;
let known: Known;
let ports: { api: number; gateway: number };
let processes: ReturnType<typeof descendantsOf>;
const statuses = new Map<string, number>();
const wrong: string[] = [];

beforeAll(async () => {
  service = await startRealService({
    ...WITH_INSPECTOR,
    POOL_MIN_IDLE: '1',
    POOL_MAX_IDLE: '1',
    POOL_MAX: '2',
    CREATE_WAIT: '100ms',
    QUEUE_TIMEOUT: '1s',
    TRUSTED_PROXIES: '127.0.0.1',
    OPERATOR_TOKEN,
    LOG_LEVEL: 'error',
  });
  await eventually(async () => ((await poolOf(service))['idle'] ?? 0) > 0, 'a browser waits');
  // The session gets the only browser that there is now; later ones come and go with sessions.
  processes = descendantsOf(service.pid);
  session = await createWarm(service);
  const { body: document } = await service.request('GET', '/api/openapi.json');
  const other = await service.request('POST', '/api/sessions', {}, { prefer: 'respond-async' });
  const plain = service.runtime.gateway_ws_url ?? '';
  ports = { api: Number(new URL(service.apiUrl).port), gateway: Number(new URL(plain).port) };
  const cdp = new URL(session.cdp_url).pathname;
  const vnc = new URL(session.vnc_url).pathname.replace(/websockify$/, '');
  known = {
    document: document as OpenApiDocument,
    key: DEV_KEY,
    operatorToken: OPERATOR_TOKEN,
    sessionIds: [other.body.id, 'ses_none'],
    gatewayPaths: [
      ...['version', 'list', 'protocol'].map((name) => `${cdp}/json/${name}`),
      ...[vnc, `${vnc}state`, `${vnc}websockify`, cdp],
    ],
  };
});
afterAll(() => service[Symbol.asyncDispose]());

test(`${REQUESTS} fuzzed requests get no 5xx but specified ones, and end no process`, async () => {
  await fuzz(0, WARM);
  const heldBefore = await heldBytes(service);
  await fuzz(WARM, REQUESTS);
  const heldAfter = await heldBytes(service);
  const seen = JSON.stringify(Object.fromEntries([...statuses].toSorted()));
  const mebi = (bytes: number) => (bytes / 1024 ** 2).toFixed(1);
  console.log(`seed ${SEED}: ${seen}; held ${mebi(heldBefore)} MiB, then ${mebi(heldAfter)}`);

  expect(wrong.slice(0, 10), `seed ${SEED}`).toEqual([]);
  expect(heldAfter - heldBefore).toBeLessThan(GROWTH_MAX_BYTES);
  expect(stillRunning(processes)).toEqual(processes);
  expect(service.output()).not.toContain('"level":60');
  // Most requests came as far as a handler, else the test would say little.
  expect(statuses.get('api 200') ?? 0).toBeGreaterThan(REQUESTS / 20);
  expect(statuses.get('gateway 101') ?? 0).toBeGreaterThan(REQUESTS / 200);
});

test('the session that was there all the time can still be driven and watched', async () => {
  // Its tickets were fuzzed beyond their limit for this minute; it has other addresses now.
  const rotated = await service.request('POST', `/api/sessions/${session.id}/rotate-access`);
  const addresses = { ...session, ...(rotated.body as CreatedSession) };
  const driver = await eventually(
    () => openCdp(addresses.cdp_url).catch(() => null),
    'the browser can be driven',
  );
  expect(driver.reply).toMatchObject({ id: 1, result: { product: expect.any(String) } });
  const viewer = await openScreen(addresses, session.vnc_password);
  expect(viewer.rfb.width).toBe(1280);
  driver.socket.close();
  viewer.socket.close();
});

/** Sends the requests from one number to another; each depends on the seed and its number alone. */
async function fuzz(from: number, to: number): Promise<void> {
  let next = from;
  async function sendOnes(): Promise<void> {
    while (next < to) await sendOne(createRandom(SEED * 1_000_003 + next++));
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendOnes));
}

async function sendOne(random: Random): Promise<void> {
  const kind = random.int(20);
  const isGateway = kind >= 13;
  const asked = kind < 13 ? apiRequest(random, known) : atGateway(random, kind);
  const bytes = random.chance(0.15) ? corrupted(random, asked) : asked;
  const more = kind >= 17 ? frames(random) : undefined;
  const answer = await send(isGateway ? ports.gateway : ports.api, bytes, more);
  const at = isGateway ? 'gateway' : 'api';
  const status = `${at} ${answer?.status ?? 'closed'}`;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const flaw = flawOf(answer);
  if (flaw !== null) wrong.push(`${at}: ${flaw} to ${JSON.stringify(bytes.toString('latin1'))}`);
}

function atGateway(random: Random, kind: number): Buffer {
  if (kind < 17) return gatewayRequest(random, known);
  const [cdp, vnc] = [known.gatewayPaths.at(-1) ?? '', known.gatewayPaths.at(-2) ?? ''];
  return handshake(random, random.chance(0.5) ? cdp : vnc);
}

/** What is wrong with an answer: an unspecified 5xx, or an error without the specified body. */
function flawOf(answer: Answered): string | null {
  if (answer === null || answer.status < 400) return null;
  const { status, head, body } = answer;
  if (body === '' && /^content-length: [1-9]/m.test(head)) return null; // the answer to HEAD
  let error: { error?: string; code?: number } = {};
  try {
    if (body !== '') error = JSON.parse(body) as typeof error;
  } catch {
    return `${status} ${body.slice(0, 200)}`;
  }
  if (status >= 500 && !SPECIFIED.includes(error.error ?? ''))
    return `${status} ${body.slice(0, 200)}`;
  if (body !== '' && error.code !== status) return `${status} with the body ${body.slice(0, 200)}`;
  return null;
}
