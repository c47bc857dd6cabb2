import { availableParallelism } from 'node:os';
import { groupsOf, isLimit, readText, type Group } from '#src/kernel/host/control-groups.ts';

/** The free resources of this host, as far as the kernel reports them. */
export type Host = {
  /** Memory that can be allocated before the kernel kills for it; null: not known. */
  memoryFreeBytes: number | null;
  /** Share of the last minute in which some task waited for a core, 0 to 1; null: not known. */
  cpuPressure: number | null;
};

/**
 * Which limits count. `group`: those of the machine, of this process's control group and of its
 * parent groups, for browsers that are children of this process. `machine`: those of the machine
 * alone, for browsers that are not.
 */
export type HostScope = 'group' | 'machine';

/** `root`: where /proc and /sys are; tests set another folder. */
type Place = { scope: HostScope; root?: string };

/**
 * Reads the free resources: the lowest of the machine's and of each control group from this
 * process's upwards, version 1 or 2. A file that is missing or unreadable imposes no limit. The
 * kernel answers these reads from memory, so none goes through the thread pool: that would cost
 * several times as much, each second.
 */
export function readHost({ scope, root = '/' }: Place): Host {
  const groups = scope === 'group' ? groupsOf(root) : [];
  const memory = groups.filter(({ controls }) => controls === 'all' || controls === 'memory');
  const free = memory.map((group) => freeOfGroup(root, group));
  const available = availableBytes(readText(root, 'proc/meminfo'));
  const known = [available, ...free].filter((bytes) => bytes !== null);
  const own = groups.find(({ controls }) => controls === 'all');
  const ownPressure =
    own === undefined ? null : someShare(readText(root, own.folder, 'cpu.pressure'));
  return {
    memoryFreeBytes: known.length === 0 ? null : Math.max(0, Math.min(...known)),
    cpuPressure: ownPressure ?? someShare(readText(root, 'proc/pressure/cpu')),
  };
}

/** Cores that this process may use: the machine's, or the quota of its control groups if less. */
export function coresOf({ scope, root = '/' }: Place): number {
  const cores = availableParallelism();
  if (scope === 'machine') return cores;
  const groups = groupsOf(root).filter(({ controls }) => controls === 'all' || controls === 'cpu');
  const quotas = groups.map((group) => quotaOf(root, group));
  return Math.max(1, Math.ceil(Math.min(cores, ...quotas.filter((quota) => quota !== null))));
}

/** Memory that a group may still allocate; its inactive file cache counts as free. */
function freeOfGroup(root: string, { folder, controls }: Group): number | null {
  const [limitName, usageName, cacheName] =
    controls === 'all'
      ? ['memory.max', 'memory.current', 'inactive_file']
      : ['memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file'];
  const limit = readText(root, folder, limitName ?? '');
  if (limit === null || !isLimit(limit)) return null;
  const usage = readText(root, folder, usageName ?? '');
  if (usage === null) return null;
  const stat = readText(root, folder, 'memory.stat');
  const cache = new RegExp(`^${cacheName} (\\d+)$`, 'm').exec(stat ?? '')?.[1];
  return Number(limit) - (Number(usage) - Number(cache ?? 0));
}

/** Cores; null where the group has no quota. */
function quotaOf(root: string, { folder, controls }: Group): number | null {
  const text =
    controls === 'all'
      ? readText(root, folder, 'cpu.max')
      : `${readText(root, folder, 'cpu.cfs_quota_us')} ` +
        `${readText(root, folder, 'cpu.cfs_period_us')}`;
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
