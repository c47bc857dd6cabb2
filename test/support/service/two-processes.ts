import { once } from 'node:events';
import { connect } from 'node:net';
import { startService, type RunningService } from './service.ts';

/** All processes of a service need it: an address of one has to be valid at the others. */
export const MASTER_KEY = 'master-key-of-two-processes-0123456789';
/** The parts of a service that work beside those that clients reach. */
export const WORKERS = 'projector,provisioner,timekeeper';
export const FRONT = 'api,gateway';

type Env = Record<string, string>;

/** A service in two processes: the workers with the embedded servers, and API and gateway. */
export type TwoProcesses = AsyncDisposable & { workers: RunningService; front: RunningService };

/** @param env variables of both; `own` is for one of them */
export async function startTwoProcesses(env: Env, own: { workers: Env }): Promise<TwoProcesses> {
  const two = await startTwo({ ...env, ...own.workers, ROLES: WORKERS }, { ...env, ROLES: FRONT });
  return { ...two, workers: two.first, front: two.second };
}

/** A whole service with a further API process; `env` is for both, `own` for one of them. */
export function startTwoApis(env: Env = {}, own: { first?: Env; second?: Env } = {}) {
  return startTwo({ ...env, ...own.first }, { ROLES: 'api', ...env, ...own.second });
}

/** A further API process of a service that was started with MASTER_KEY. */
export function startSecondApi(first: RunningService, env: Env = {}): Promise<RunningService> {
  return startService({ ROLES: 'api', ...env }, { beside: first });
}

async function startTwo(firstEnv: Env, secondEnv: Env) {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await startService({ MASTER_KEY, ...firstEnv }));
  const second = stack.use(await startService(secondEnv, { beside: first }));
  const all = stack.move();
  return { first, second, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Sends raw bytes to the API, and waits until it has answered completely. */
export async function sendBytes(apiUrl: string, bytes: string): Promise<void> {
  const socket = connect(Number(new URL(apiUrl).port), '127.0.0.1');
  socket.write(bytes);
  socket.resume();
  await once(socket, 'close');
}
