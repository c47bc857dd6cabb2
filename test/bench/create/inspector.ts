import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { RunningService } from '#test/support/service/service.ts';

/** Makes Node print where its inspector listens. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Nodes of a sampling profile of V8; `ofSelf` is microseconds or bytes of the function alone. */
export type ProfileNode = { name: string; url: string; ofSelf: number; children: ProfileNode[] };

type Frame = { functionName: string; url: string };
type HeapNode = { callFrame: Frame; selfSize: number; children: HeapNode[] };
type CpuProfile = {
  nodes: { id: number; callFrame: Frame; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
};

const CPU_EVERY_US = 250;
const HEAP_EVERY_BYTES = 4_096;

export type Inspector = {
  /** Microseconds in which each function was at the top of the stack. */
  timesOf(work: () => Promise<void>): Promise<ProfileNode>;
  /** Bytes that each function allocated, those that were collected meanwhile included. */
  bytesOf(work: () => Promise<void>): Promise<ProfileNode>;
} & Disposable;

/** The inspector of a service that was started with INSPECTED. */
export async function inspect(service: RunningService): Promise<Inspector> {
  const [, address] = /Debugger listening on (ws:\S+)/.exec(service.output()) ?? [];
  if (address === undefined) throw new Error('the service has no inspector');
  const socket = new WebSocket(address, { maxPayload: 0 });
  await once(socket, 'open');
  let asked = 0;
  const ask = async (method: string, params: object = {}): Promise<unknown> => {
    const id = (asked += 1);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const onMessage = (data: Buffer) => {
      const answer = JSON.parse(data.toString()) as { id: number; result: unknown; error?: object };
      if (answer.id !== id) return;
      socket.off('message', onMessage);
      if (answer.error === undefined) resolve(answer.result);
      else reject(new Error(`${method}: ${JSON.stringify(answer.error)}`));
    };
    socket.on('message', onMessage);
    socket.send(JSON.stringify({ id, method, params }));
    return promise;
  };
  await ask('Profiler.enable');
  await ask('Profiler.setSamplingInterval', { interval: CPU_EVERY_US });
  return {
    async timesOf(work) {
      await ask('Profiler.start');
      await work();
      const { profile } = (await ask('Profiler.stop')) as { profile: CpuProfile };
      return treeOf(profile);
    },
    async bytesOf(work) {
      await ask('HeapProfiler.startSampling', {
        samplingInterval: HEAP_EVERY_BYTES,
        includeObjectsCollectedByMajorGC: true,
        includeObjectsCollectedByMinorGC: true,
      });
      await work();
      const { profile } = (await ask('HeapProfiler.stopSampling')) as {
        profile: { head: HeapNode };
      };
      return ofHeap(profile.head);
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}

function treeOf({ nodes, samples, timeDeltas }: CpuProfile): ProfileNode {
  const times = new Map<number, number>();
  for (const [at, id] of samples.entries())
    times.set(id, (times.get(id) ?? 0) + (timeDeltas[at] ?? 0));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const build = (id: number): ProfileNode => {
    const { callFrame, children = [] } = byId.get(id) as CpuProfile['nodes'][number];
    const ofSelf = callFrame.functionName === '(idle)' ? 0 : (times.get(id) ?? 0);
    return { ...nameOf(callFrame), ofSelf, children: children.map(build) };
  };
  return build(nodes[0]?.id ?? 0);
}

function ofHeap({ callFrame, selfSize, children }: HeapNode): ProfileNode {
  return { ...nameOf(callFrame), ofSelf: selfSize, children: children.map(ofHeap) };
}

function nameOf({ functionName, url }: Frame) {
  return { name: functionName === '' ? '(anonymous)' : functionName, url };
}
