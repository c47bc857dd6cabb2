import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { RunningService } from '#test/support/service/service.ts';

/** Lets a service's process open its inspector, on a port that it chooses. */
export const WITH_INSPECTOR = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes that the service's process holds after a full garbage collection. */
export async function heldBytes(service: RunningService): Promise<number> {
  const [, url] = /Debugger listening on (ws:\S+)/.exec(service.output()) ?? [];
  if (url === undefined) throw new Error('the service was started without its inspector');
  const socket = new WebSocket(url);
  await once(socket, 'open');
  try {
    // Twice: the objects freed first may have held others.
    await ask(socket, 1, 'HeapProfiler.collectGarbage', {});
    await ask(socket, 2, 'HeapProfiler.collectGarbage', {});
    const expression = '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())';
    const { result } = await ask(socket, 3, 'Runtime.evaluate', { expression });
    return (result as { value: number }).value;
  } finally {
    socket.terminate();
  }
}

async function ask(socket: WebSocket, id: number, method: string, params: object) {
  socket.send(JSON.stringify({ id, method, params }));
  for (;;) {
    const [data] = (await once(socket, 'message')) as [Buffer];
    const answer = JSON.parse(data.toString()) as { id?: number; result?: Record<string, unknown> };
    if (answer.id === id) return answer.result ?? {};
  }
}
