import { readFileSync } from 'node:fs';

/**
 * How many processes the kernel has killed for lack of memory: in this service's own control group
 * where the kernel counts that, else on the whole host; null if it counts neither.
 */
export function countMemoryKills(): number | null {
  return readCount(`/sys/fs/cgroup${ownGroup()}/memory.events`) ?? readCount('/proc/vmstat');
}

/** The path of the group in the unified hierarchy. */
function ownGroup(): string {
  const line = read('/proc/self/cgroup')
    .split('\n')
    .find((entry) => entry.startsWith('0::'));
  return line?.slice(3) ?? '';
}

function readCount(file: string): number | null {
  const match = /^oom_kill (\d+)$/m.exec(read(file));
  return match === null ? null : Number(match[1]);
}

/** The file's text, or '' where this kernel does not have it. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
