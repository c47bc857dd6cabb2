import { readFileSync } from 'node:fs';

/**
 * How many processes the kernel has killed for want of memory, in this service's own control group
 * where the kernel counts that, else on the whole machine; null where it says neither.
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

/** Which of these files there are depends on the kernel. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
