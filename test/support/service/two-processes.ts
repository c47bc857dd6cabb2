import { once } from 'node:events';
import { connect } from 'node:net';
import { startService, type RunningService } from './service.ts';

export const WORKERS = 'projector,provisioner,timekeeper';
export const FRONT = 'api,gateway';

/** A service in two processes: the workers with the embedded servers, and API and gateway. */
export type TwoProcesses = AsyncDisposable & { workers: RunningService; front: RunningService };

/** @param env variables of both; `own` is for one of them */
export async function startTwoProcesses(
  env: Record<string, string>,
  own: { workers: Record<string, string> },
): Promise<TwoProcesses> {
  await using stack = new AsyncDisposableStack();
  const common = { MASTER_KEY: 'master-key-of-two-processes-0123456789', ...env };
  const workers = stack.use(await startService({ ...common, ...own.workers, ROLES: WORKERS }));
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = workers.runtime;
  const front = stack.use(await startService({ ...common, ROLES: FRONT, NATS_URL, REDIS_URL }));
  const all = stack.move();
  return { workers, front, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Sends raw bytes to the API, and waits until it has answered completely. */
export async function sendBytes(apiUrl: string, bytes: string): Promise<void> {
  const socket = connect(Number(new URL(apiUrl).port), '127.0.0.1');
  socket.write(bytes);
  socket.resume();
  await once(socket, 'close');
}
