import { once } from 'node:events';
import type { WebSocket } from 'ws';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { firstReply } from './cdp-client.ts';
import { send } from './http-client.ts';
import { summarize, timed, type Samples } from './samples.ts';

/** The times of one session's life, in milliseconds. */
export type Life = {
  create: number;
  firstReply: number;
  release: number;
  socketClosed: number;
  capacityBack: number;
};

export type Lifecycle = Record<keyof Life, Samples>;

export type Bare = { launch: Samples; exit: Samples };

/**
 * Warm-up rounds: a service runs for days. The first bursts of four of a new process took 69 and 73
 * ms, the seventh to tenth 38 to 46: its code is compiled by then.
 */
export const WARM_UP_ROUNDS = 10;

/** Sessions one after the other; each begins when a browser is idle. */
export async function measureLives(service: RunningService, rounds: number): Promise<Lifecycle> {
  const lives: Life[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) lives.push(await live(service));
  const of = (part: keyof Life) => summarize(lives.slice(WARM_UP_ROUNDS).map((life) => life[part]));
  return {
    create: of('create'),
    firstReply: of('firstReply'),
    release: of('release'),
    socketClosed: of('socketClosed'),
    capacityBack: of('capacityBack'),
  };
}

/** One session on an idle browser; the next browser is idle at its end. */
export async function live(service: RunningService): Promise<Life> {
  await untilIdle(service, 1);
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
    const times = await openTogether(service, atOnce);
    if (round >= WARM_UP_ROUNDS) measured.push(...times);
  }
  return summarize(measured);
}

/** Concurrent creates on as many idle browsers, which are idle again at the end. */
export async function openTogether(service: RunningService, atOnce: number): Promise<number[]> {
  await untilIdle(service, atOnce);
  const times = await burst(service, atOnce);
  await untilIdle(service, atOnce);
  return times;
}

/** Concurrent creates, each to its first CDP reply; their sessions are stopped afterwards. */
export async function burst(service: RunningService, atOnce: number): Promise<number[]> {
  const lives = await Promise.all(
    Array.from({ length: atOnce }, () => timed(() => openSession(service))),
  );
  await Promise.all(lives.map(({ result }) => stopSession(service, result.session.id)));
  return lives.map(({ ms }) => ms);
}

async function openSession(service: RunningService) {
  const session = await createSession(service);
  return { session, socket: await firstReply(session.cdpUrl) };
}

/** Creates that find no idle browser, to their first CDP reply. */
export async function measureCold(service: RunningService, rounds: number): Promise<Samples> {
  const measured: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const ms = await openCold(service);
    if (round > 0) measured.push(ms);
  }
  return summarize(measured);
}

/** A create on a service that keeps no browser idle, to its first CDP reply. */
export async function openCold(service: RunningService): Promise<number> {
  const { ms, result } = await timed(() => openSession(service));
  await stopSession(service, result.session.id);
  await eventually(async () => (await pool(service)).total === 0, 'the browser is gone');
  return ms;
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

/** Resolves once this many browsers are idle, whatever the recent demand. */
export function keepIdle(count: number): Record<string, string> {
  return { POOL_MIN_IDLE: `${count}`, POOL_MAX_IDLE: `${count}` };
}

export async function withService<Result>(
  env: Record<string, string>,
  measure: (service: RunningService) => Promise<Result>,
): Promise<Result> {
  await using service = await startService(env);
  return await measure(service);
}
