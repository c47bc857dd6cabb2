import { groupsOf, isLimit, readText, type Group } from './control-groups.ts';

/** What this process and its children may have together; Infinity: nothing limits it. */
export type ProcessLimits = { memoryBytes: number; pids: number };

/**
 * The lowest limit of the machine and of each control group from this process's upwards, version 1
 * or 2. A file that is missing or unreadable imposes none.
 * @param root where /proc and /sys are; tests set another folder
 */
export function readProcessLimits(root = '/'): ProcessLimits {
  const groups = groupsOf(root);
  const lowest = (controls: Group['controls'], files: { all: string; own: string }) =>
    groups
      .filter((group) => group.controls === 'all' || group.controls === controls)
      .map(({ folder, controls: by }) => {
        const text = readText(root, folder, by === 'all' ? files.all : files.own);
        return text !== null && isLimit(text) ? Number(text) : Infinity;
      });
  const total = /^MemTotal:\s+(\d+) kB$/m.exec(readText(root, 'proc/meminfo') ?? '')?.[1];
  const memory = lowest('memory', { all: 'memory.max', own: 'memory.limit_in_bytes' });
  const pids = lowest('pids', { all: 'pids.max', own: 'pids.max' });
  const machine = total === undefined ? Infinity : Number(total) * 1024;
  return { memoryBytes: Math.min(machine, ...memory), pids: Math.min(Infinity, ...pids) };
}

/**
 * How many of something fit into a part of the memory: `least` at least, `most` at most, which is
 * also the number where no limit is known.
 */
export function fitting(
  memoryBytes: number,
  { eachBytes, least, most }: { eachBytes: number; least: number; most: number },
): number {
  return Math.max(least, Math.min(most, Math.floor(memoryBytes / eachBytes)));
}
