import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { flawOf } from '#test/support/fuzz/flaws.ts';
import { frames } from '#test/support/fuzz/frames.ts';
import { corrupted, mutated } from '#test/support/fuzz/mutations.ts';
import { bytesOf } from '#test/support/fuzz/parts.ts';
import { createRandom, type Random } from '#test/support/fuzz/random.ts';
import type { Route } from '#test/support/fuzz/route.ts';
import { routesOf } from '#test/support/fuzz/routes.ts';
import { send, wayOf } from '#test/support/fuzz/sender.ts';
import { createTally } from '#test/support/fuzz/tally.ts';
import { openWorld, type World } from '#test/support/fuzz/world.ts';
import { heldBytes, WITH_INSPECTOR } from '#test/support/load/heap.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { descendantsOf, stillRunning } from '#test/support/service/processes.ts';
import { openCdp, openScreen, startRealService } from '#test/support/service/real-session.ts';
import type { CreatedSession, RealService } from '#test/support/service/real-session.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * Requests of all routes at the whole service: valid, nearly valid and hostile ones. The routes
 * are those of its own OpenAPI document, and those that this does not describe. `FUZZ_SEED`
 * repeats a run; the seed is in the output.
 */
const SEED = Number(process.env['FUZZ_SEED'] ?? 14);
const OPERATOR_TOKEN = 'operator-4711-token-of-the-tests';
const METRICS_TOKEN = 'metrics-4711-token-of-the-tests';
/** After so many requests what they used up is made anew. */
const BATCH = 800;
const GROWTH_MAX_BYTES = 32 * 1024 * 1024;
const MEBI = 1024 ** 2;

/**
 * What each run has: real browsers are for the routes that need them, and are slow. `least`:
 * successes that each route is to have; of those that are in all others' way one.
 */
const RUNS = [
  {
    browsers: 'simulated',
    requests: Number(process.env['FUZZ_REQUESTS'] ?? soakOr(50_000, 8_000)),
    atOnce: 32,
    size: { driven: 4, sessions: 8, isReal: false },
    pool: { POOL_MIN_IDLE: '8', POOL_MAX: '80', SIMULATED_LAUNCH_MS: '5ms' },
    isFor: ({ needs }: Route) => needs !== 'real',
    least: 3,
  },
  {
    browsers: 'process',
    requests: Number(process.env['FUZZ_REQUESTS_REAL'] ?? soakOr(5_000, 1_200)),
    atOnce: 6,
    size: { driven: 2, sessions: 0, isReal: true },
    pool: { POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '12' },
    isFor: ({ needs, at }: Route) => needs === 'real' || at === 'gateway',
    least: 1,
  },
];

describe.each(RUNS)('browsers: $browsers', (run) => {
  const { browsers, requests, atOnce, size, pool, isFor, least } = run;
  let service: RealService;
  let world: World;
  let routes: Route[];
  let processes: ReturnType<typeof descendantsOf>;
  const tally = createTally();
  const wrong: string[] = [];

  beforeAll(async () => {
    service = await startRealService({
      ...WITH_INSPECTOR,
      ...pool,
      BROWSERS: browsers,
      DEBUGGER_PORTS: await portRange(),
      TRUSTED_PROXIES: '127.0.0.1',
      WEBHOOKS_ALLOW_PRIVATE: 'yes',
      OPERATOR_TOKEN,
      METRICS_TOKEN,
      TIERS: JSON.stringify({
        max: { requests_per_minute: 1e9, concurrent_sessions: 1_000, credits: 1e9 },
      }),
      LOG_LEVEL: 'error',
    });
    processes = descendantsOf(service.pid).filter(
      ({ command }) => !/chrom|Xtigervnc/i.test(command),
    );
    const secrets = { key: DEV_KEY, operatorToken: OPERATOR_TOKEN, metricsToken: METRICS_TOKEN };
    world = await openWorld(service, { ...secrets, size });
    routes = routesOf(world.document).filter(isFor);
  }, 600_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  test(`${requests} requests of all routes get no 5xx but documented ones, and end no process`, async () => {
    const warm = Math.floor(requests / 4);
    await fuzz(0, warm);
    const [heldBefore, rssBefore] = await memory();
    await fuzz(warm, requests);
    const [heldAfter, rssAfter] = await memory();
    const mebi = (bytes: number) => (bytes / MEBI).toFixed(1);
    console.log(
      `seed ${SEED}, ${requests} requests, browsers ${browsers}\n${tally.text()}\n` +
        `held ${mebi(heldBefore)} MiB after ${warm}, ${mebi(heldAfter)} at the end; ` +
        `resident ${mebi(rssBefore)} MiB, then ${mebi(rssAfter)}`,
    );

    expect(wrong.slice(0, 20), `seed ${SEED}`).toEqual([]);
    expect(heldAfter - heldBefore).toBeLessThan(GROWTH_MAX_BYTES);
    expect(stillRunning(processes)).toEqual(processes);
    expect(service.output()).not.toContain('"level":60');
    // Without a success a route has only been looked at.
    expect(
      tally.short(
        routes.filter(({ needs }) => needs !== 'alone'),
        least,
      ),
    ).toEqual([]);
    expect(tally.short(routes, 1)).toEqual([]);
  }, 7_200_000);

  test('a session that is made afterwards can be driven and watched', async () => {
    await world.renew();
    const { body } = await service.request('POST', '/api/sessions', {});
    const session = body as CreatedSession;
    const driver = await eventually(
      () => openCdp(session.cdp_url).catch(() => null),
      'the browser can be driven',
    );
    expect(driver.reply).toMatchObject({ id: 1, result: { product: expect.any(String) } });
    const viewer = await openScreen(session, session.vnc_password);
    expect(viewer.rfb.width).toBe(1280);
    driver.socket.close();
    viewer.socket.close();
  }, 300_000);

  async function memory(): Promise<[held: number, resident: number]> {
    const held = await heldBytes(service);
    const status = readFileSync(`/proc/${service.pid}/status`, 'utf8');
    return [held, Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024];
  }

  /** Sends the requests from one number to another; each depends on the seed and its number. */
  async function fuzz(from: number, to: number): Promise<void> {
    const usual = routes.filter(({ needs }) => needs !== 'alone');
    for (let begin = from; begin < to; begin += BATCH) {
      await world.renew();
      let next = begin;
      const end = Math.min(to, begin + BATCH);
      const sendOnes = async () => {
        while (next < end) {
          const number = next++;
          const route = usual[number % usual.length];
          if (route !== undefined) await sendOne(route, createRandom(SEED * 1_000_003 + number));
        }
      };
      await Promise.all(Array.from({ length: atOnce }, sendOnes));
      for (const route of routes)
        if (route.needs === 'alone') await sendOne(route, createRandom(SEED * 7 + begin));
    }
  }

  async function sendOne(route: Route, random: Random): Promise<void> {
    const valid = route.request(random, world);
    const kind = random.int(20);
    const parts = kind < 9 ? valid : mutated(random, valid);
    const whole = bytesOf(random, parts);
    const bytes = kind === 19 ? corrupted(random, whole) : whole;
    const port = world.ports[route.at];
    const answer = await send(port, bytes, {
      ...(kind >= 6 && { way: wayOf(random, bytes.length) }),
      ...(route.success === 'socket' && { more: frames(random) }),
      quietMs: kind < 9 ? 20_000 : 500,
    }).catch((error: unknown) => {
      wrong.push(`${route.name}: ${String(error)}`);
      return null;
    });
    tally.count(route, String(answer?.status ?? 'closed'));
    const isAsked = kind < 19 && parts.path === valid.path && parts.method === valid.method;
    const flaw = flawOf(answer, route, isAsked);
    if (flaw !== null)
      wrong.push(
        `${route.name}: ${flaw} to ${JSON.stringify(bytes.toString('latin1').slice(0, 2_000))}`,
      );
    if (answer === null || parts !== valid) return;
    const isFine = route.success === 'socket' ? answer.status === 101 : answer.status < 300;
    if (!isFine) return;
    tally.succeeded(route);
    route.keep?.(world, answer);
  }
});

/** Free ports, one after the other: sessions of an organization may have a third of them. */
async function portRange(): Promise<string> {
  const ports = (await freePorts(40)).toSorted((a, b) => a - b);
  let [from = 0] = ports;
  let to = from;
  for (const port of ports) {
    if (port !== to + 1) from = port;
    to = port;
    if (to - from >= 20) break;
  }
  return `${from}-${to}`;
}
