import { once } from 'node:events';
import type { WebSocket } from 'ws';
import { sleep } from '#src/async/sleep.ts';
import { eventually, type RunningService } from '#test/support/service/service.ts';
import { firstReply } from './cdp-client.ts';
import { launchBare } from './bare-browser.ts';
import { send } from './http-client.ts';
import { summarize, timed, type Samples } from './samples.ts';

export type Programs = { chromium: string; xvnc: string };

/** The times of one session's life, in milliseconds. */
type Life = {
  create: number;
  firstReply: number;
  release: number;
  socketClosed: number;
  capacityBack: number;
};

export type Lifecycle = Record<keyof Life, Samples>;

export type Bare = { launch: Samples; exit: Samples };

/** Warm-up rounds: a service runs for days, compiled after its first steps. */
const WARM_UP_ROUNDS = 5;

/** Sessions one after the other; each begins when a browser is idle. */
export async function measureLives(service: RunningService, rounds: number): Promise<Lifecycle> {
  const lives: Life[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) {
    await untilIdle(service, 1);
    lives.push(await live(service));
  }
  const of = (part: keyof Life) => summarize(lives.slice(WARM_UP_ROUNDS).map((life) => life[part]));
  return {
    create: of('create'),
    firstReply: of('firstReply'),
    release: of('release'),
    socketClosed: of('socketClosed'),
    capacityBack: of('capacityBack'),
  };
}

async function live(service: RunningService): Promise<Life> {
  const begunAt = performance.now();
  const { ms: create, result: created } = await timed(() => createSession(service));
  const socket = await firstReply(created.cdpUrl);
  const reply = performance.now() - begunAt;
  const releasedAt = performance.now();
  const closed = closeTime(socket, releasedAt);
  const { ms: release } = await timed(() => stopSession(service, created.id));
  const socketClosed = await closed;
  await untilIdle(service, 1);
  return {
    create,
    firstReply: reply,
    release,
    socketClosed,
    capacityBack: performance.now() - releasedAt,
  };
}

async function closeTime(socket: WebSocket, since: number): Promise<number> {
  socket.on('error', () => undefined);
  await once(socket, 'close');
  return performance.now() - since;
}

/** Repeated rounds of concurrent creates, each to its first CDP reply. */
export async function measureTogether(
  service: RunningService,
  atOnce: number,
  rounds: number,
): Promise<Samples> {
  const measured: number[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) {
    await untilIdle(service, atOnce);
    const lives = await Promise.all(
      Array.from({ length: atOnce }, () => timed(() => openSession(service))),
    );
    if (round >= WARM_UP_ROUNDS) measured.push(...lives.map(({ ms }) => ms));
    await Promise.all(lives.map(({ result }) => stopSession(service, result.session.id)));
  }
  return summarize(measured);
}

/** Bursts that a pool learns from before it is measured, and the time between two of them. */
const BURSTS_TO_LEARN = 3;
const BURST_EVERY_MS = 20_000;

/**
 * Bursts of concurrent creates, each to its first CDP reply, on a pool that has to learn how many
 * browsers to keep for them. The first three are not counted.
 */
export async function measureBursts(
  service: RunningService,
  atOnce: number,
  rounds: number,
): Promise<Samples> {
  const measured: number[] = [];
  await untilIdle(service, 1);
  for (let burst = 0; burst < BURSTS_TO_LEARN + rounds; burst += 1) {
    const nextAt = performance.now() + BURST_EVERY_MS;
    const lives = await Promise.all(
      Array.from({ length: atOnce }, () => timed(() => openSession(service))),
    );
    if (burst >= BURSTS_TO_LEARN) measured.push(...lives.map(({ ms }) => ms));
    await Promise.all(lives.map(({ result }) => stopSession(service, result.session.id)));
    await sleep(nextAt - performance.now());
  }
  return summarize(measured);
}

async function openSession(service: RunningService) {
  const session = await createSession(service);
  return { session, socket: await firstReply(session.cdpUrl) };
}

/** Creates that find no idle browser, to their first CDP reply. */
export async function measureCold(service: RunningService, rounds: number): Promise<Samples> {
  const measured: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const { ms, result } = await timed(() => openSession(service));
    if (round > 0) measured.push(ms);
    await stopSession(service, result.session.id);
    await eventually(async () => (await pool(service)).total === 0, 'the browser is gone');
  }
  return summarize(measured);
}

/** Unmanaged browsers: launch to first CDP reply, and exit. */
export async function measureBare(
  programs: Programs,
  mode: 'headless' | 'headful',
  rounds: number,
  atOnce = 1,
): Promise<Bare> {
  const launches: number[] = [];
  const exits: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const browsers = await Promise.all(
      Array.from({ length: atOnce }, () => timed(() => launchBare(programs, mode))),
    );
    for (const { ms, result } of browsers) {
      const exit = await timed(() => result.exit());
      if (round > 0) {
        launches.push(ms);
        exits.push(exit.ms);
      }
    }
  }
  return { launch: summarize(launches), exit: summarize(exits) };
}

export async function createSession(
  service: RunningService,
): Promise<{ id: string; cdpUrl: string }> {
  const url = `${service.apiUrl}/api/sessions`;
  const { status, text } = await send('POST', url, '{"duration":"10m"}');
  const body = JSON.parse(text) as { id: string; status: string; cdp_url: string };
  if (status !== 201 || body.status !== 'active') throw new Error(`create: ${status} ${text}`);
  return { id: body.id, cdpUrl: body.cdp_url };
}

export function stopSession(service: RunningService, id: string) {
  return send('DELETE', `${service.apiUrl}/api/sessions/${id}`);
}

export async function untilIdle(service: RunningService, count: number): Promise<void> {
  await eventually(async () => {
    const { idle, busy, launching, terminating } = await pool(service);
    return idle >= count && busy + launching + terminating === 0;
  }, `${count} browsers wait`);
}

type Pool = { total: number; idle: number; busy: number; launching: number; terminating: number };

async function pool(service: RunningService): Promise<Pool> {
  const { body } = await service.request('GET', '/api/status');
  return body.autoscaler.pool_status as Pool;
}
