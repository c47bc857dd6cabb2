import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

/** How much the machine can still bear, as far as it says so. */
export type Host = {
  /** What may still be taken before something is killed for it; null: not known. */
  memoryFreeBytes: number | null;
  /** Share of the last minute in which something waited for a core, 0 to 1; null: not known. */
  cpuPressure: number | null;
};

/**
 * Whose limits count: `group` are those of this process's control group and of all above it, beside
 * the machine's, for browsers that are its children; `machine` is for browsers that are not.
 */
export type HostScope = 'group' | 'machine';

/** Where the machine's files are; another root in tests. */
type Place = { scope: HostScope; root?: string };

/**
 * Reads what is free: of the machine, and of each control group from this process's up, of version
 * 1 and 2 alike. A file that is not there, or says nothing, limits nothing.
 */
export async function readHost({ scope, root = '/' }: Place): Promise<Host> {
  const [available, pressure, groups] = await Promise.all([
    readText(root, 'proc/meminfo').then(availableBytes),
    readText(root, 'proc/pressure/cpu').then(someShare),
    scope === 'group' ? groupsOf(root) : [],
  ]);
  const memory = groups.filter(({ controls }) => controls !== 'cpu');
  const free = await Promise.all(memory.map((group) => freeOfGroup(root, group)));
  const known = [available, ...free].filter((bytes) => bytes !== null);
  const own = groups.find(({ controls }) => controls === 'all');
  const ownPressure =
    own === undefined ? null : someShare(await readText(root, own.folder, 'cpu.pressure'));
  return {
    memoryFreeBytes: known.length === 0 ? null : Math.max(0, Math.min(...known)),
    cpuPressure: ownPressure ?? pressure,
  };
}

/** Cores that this process may use: the machine's, or the quota of its control groups if less. */
export async function coresOf({ scope, root = '/' }: Place): Promise<number> {
  const cores = availableParallelism();
  if (scope === 'machine') return cores;
  const groups = (await groupsOf(root)).filter(({ controls }) => controls !== 'memory');
  const quotas = await Promise.all(groups.map((group) => quotaOf(root, group)));
  return Math.max(1, Math.ceil(Math.min(cores, ...quotas.filter((quota) => quota !== null))));
}

/** A control group's folder; one of version 2 controls all, one of version 1 a part. */
type Group = { folder: string; controls: 'all' | 'memory' | 'cpu' };

/** This process's groups and all above them, the nearest first. */
async function groupsOf(root: string): Promise<Group[]> {
  const lines = ((await readText(root, 'proc/self/cgroup')) ?? '').split('\n');
  return lines.flatMap((line) => {
    const [, number, controllers = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    const names = controllers.split(',');
    if (number === '0') return upwards('sys/fs/cgroup', path, 'all');
    if (names.includes('memory')) return upwards('sys/fs/cgroup/memory', path, 'memory');
    return names.includes('cpu') ? upwards('sys/fs/cgroup/cpu', path, 'cpu') : [];
  });
}

/** In a container its own group is mounted at the top, where the path may not be seen. */
function upwards(mount: string, path: string, controls: Group['controls']): Group[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '..');
  return Array.from({ length: names.length + 1 }, (_, above) => ({
    folder: join(mount, ...names.slice(0, names.length - above)),
    controls,
  }));
}

/** What a group may still take; what it has read from files can be taken back from it. */
async function freeOfGroup(root: string, { folder, controls }: Group): Promise<number | null> {
  const [limitName, usageName, cacheName] =
    controls === 'all'
      ? ['memory.max', 'memory.current', 'inactive_file']
      : ['memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file'];
  const [limit, usage, stat] = await Promise.all([
    readText(root, folder, limitName ?? ''),
    readText(root, folder, usageName ?? ''),
    readText(root, folder, 'memory.stat'),
  ]);
  if (limit === null || usage === null || !isLimit(limit)) return null;
  const cache = new RegExp(`^${cacheName} (\\d+)$`, 'm').exec(stat ?? '')?.[1];
  return Number(limit) - (Number(usage) - Number(cache ?? 0));
}

/** `max`, and version 1's largest number less a page, mean that there is none. */
function isLimit(text: string): boolean {
  return /^\d+$/.test(text) && Number(text) < 2 ** 62;
}

/** Cores; null where the group has no quota. */
async function quotaOf(root: string, { folder, controls }: Group): Promise<number | null> {
  const text =
    controls === 'all'
      ? await readText(root, folder, 'cpu.max')
      : `${await readText(root, folder, 'cpu.cfs_quota_us')} ` +
        `${await readText(root, folder, 'cpu.cfs_period_us')}`;
  const [, quota, period] = /^(\d+) (\d+)$/.exec(text ?? '') ?? [];
  return quota === undefined || Number(period) === 0 ? null : Number(quota) / Number(period);
}

function availableBytes(meminfo: string | null): number | null {
  const kilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo ?? '')?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}

/** `some avg10=… avg60=12.50 …`: percent of the last minute in which at least one task waited. */
function someShare(pressure: string | null): number | null {
  const percent = /^some .*avg60=([\d.]+)/m.exec(pressure ?? '')?.[1];
  return percent === undefined ? null : Math.min(1, Number(percent) / 100);
}

async function readText(root: string, ...path: string[]): Promise<string | null> {
  try {
    return (await readFile(join(root, ...path), 'utf8')).trim();
  } catch {
    return null;
  }
}
