import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A control group. A group of version 2 controls everything, one of version 1 one resource.
 * `folder` is below the root.
 */
export type Group = { folder: string; controls: 'all' | Resource };
type Resource = (typeof resources)[number];
const resources = ['memory', 'cpu', 'pids'] as const;

/** This process's groups and their parents, the nearest first. */
export function groupsOf(root: string): Group[] {
  const lines = (readText(root, 'proc/self/cgroup') ?? '').split('\n');
  return lines.flatMap((line) => {
    const [, number, controllers = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (number === '0') return upwards('sys/fs/cgroup', path, 'all');
    const names = controllers.split(',');
    const controls = resources.find((one) => names.includes(one));
    return controls === undefined ? [] : upwards(`sys/fs/cgroup/${controls}`, path, controls);
  });
}

/** In a container the own group is mounted at the top, so paths below it may not exist. */
function upwards(mount: string, path: string, controls: Group['controls']): Group[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '..');
  return Array.from({ length: names.length + 1 }, (_, above) => ({
    folder: join(mount, ...names.slice(0, names.length - above)),
    controls,
  }));
}

/** `max`, and in version 1 the largest number less a page, mean no limit. */
export function isLimit(text: string): boolean {
  return /^\d+$/.test(text) && Number(text) < 2 ** 62;
}

export function readText(root: string, ...path: string[]): string | null {
  try {
    return readFileSync(join(root, ...path), 'utf8').trim();
  } catch {
    return null;
  }
}
