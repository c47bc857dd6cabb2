import { buffer } from 'node:stream/consumers';
import type { Cluster } from './cluster.ts';
import { output, ProgramFailed } from './exec.ts';
import { BROWSER } from './naming.ts';

const ANSWER_MS = 10_000;
/** The most that was used, or what is used: cgroup v2, then v1. */
const FILES = [
  '/sys/fs/cgroup/memory.peak',
  '/sys/fs/cgroup/memory/memory.max_usage_in_bytes',
  '/sys/fs/cgroup/memory.current',
];

/**
 * The most bytes of memory that a browser's container has used, with files that the kernel may
 * drop; what it uses now where the kernel does not count that (before Linux 5.19). Null: it is not
 * known here.
 * @throws Error if the Pod does not answer
 */
export async function memoryUsedBy(cluster: Cluster, pod: string): Promise<number | null> {
  const script = 'for file; do [ -r "$file" ] && exec cat "$file"; done; exit 1';
  const command = ['sh', '-c', script, 'memory', ...FILES];
  const place = { pod, container: BROWSER };
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const printed = await buffer(output(cluster, place, command, { signal }));
    return Number(printed.toString());
  } catch (error) {
    if (error instanceof ProgramFailed) return null;
    throw error;
  }
}
