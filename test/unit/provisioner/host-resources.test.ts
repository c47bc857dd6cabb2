import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { coresOf, readHost } from '#src/roles/provisioner/pool/host-resources.ts';

const GIB = 1024 ** 3;
const MEMINFO = 'MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'bss-host-'));
});
afterEach(() => rm(root, { recursive: true }));

/** Writes the kernel's files, by path. */
async function machine(files: Record<string, string | number>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), `${text}\n`);
  }
}

const version2 = {
  'proc/meminfo': MEMINFO,
  'proc/self/cgroup': '0::/app.slice/bss.service',
  'proc/pressure/cpu': 'some avg10=90.00 avg60=50.00 avg300=1.00 total=1\nfull avg10=0.00',
  'sys/fs/cgroup/app.slice/bss.service/memory.max': 'max',
  'sys/fs/cgroup/app.slice/bss.service/memory.current': GIB,
  'sys/fs/cgroup/app.slice/bss.service/cpu.max': 'max 100000',
  'sys/fs/cgroup/app.slice/memory.max': 4 * GIB,
  'sys/fs/cgroup/app.slice/memory.current': 3 * GIB,
  'sys/fs/cgroup/app.slice/memory.stat': `anon 1\ninactive_file ${GIB / 2}`,
  'sys/fs/cgroup/app.slice/cpu.max': '50000 100000',
};
const version1 = {
  'proc/meminfo': MEMINFO,
  'proc/self/cgroup': '4:memory:/docker/abc\n3:cpuset:/\n1:cpu,cpuacct:/docker/abc\n0::/',
  'sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': 2 * GIB,
  'sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes': GIB,
  'sys/fs/cgroup/memory/docker/abc/memory.stat': `total_inactive_file ${GIB / 4}`,
  'sys/fs/cgroup/memory/docker/memory.limit_in_bytes': '9223372036854771712',
  'sys/fs/cgroup/memory/docker/memory.usage_in_bytes': 3 * GIB,
  'sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us': 100_000,
  'sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us': 100_000,
};

test('free memory is what the tightest control group leaves, with its file cache counted as free', async () => {
  await machine(version2);
  expect(readHost({ scope: 'group', root }).memoryFreeBytes).toBe(1.5 * GIB);
});

test('control groups of version 1 limit the memory too', async () => {
  await machine(version1);
  expect(readHost({ scope: 'group', root }).memoryFreeBytes).toBe(1.25 * GIB);
});

test('for browsers outside of this process’s control groups the host’s memory counts', async () => {
  await machine(version2);
  expect(readHost({ scope: 'machine', root }).memoryFreeBytes).toBe(8 * GIB);
});

test('a control group that has used up its memory leaves none', async () => {
  await machine({ ...version2, 'sys/fs/cgroup/app.slice/memory.current': 5 * GIB });
  expect(readHost({ scope: 'group', root }).memoryFreeBytes).toBe(0);
});

test('the CPU pressure of the own control group takes precedence over the host’s', async () => {
  await machine(version2);
  expect(readHost({ scope: 'group', root }).cpuPressure).toBe(0.5);
  const own = 'some avg10=0.00 avg60=12.50 avg300=0.00 total=0';
  await machine({ 'sys/fs/cgroup/app.slice/bss.service/cpu.pressure': own });
  expect(readHost({ scope: 'group', root }).cpuPressure).toBe(0.125);
});

test('a CPU quota counts as cores, rounded up', async () => {
  await machine(version2);
  expect(coresOf({ scope: 'group', root })).toBe(1);
  expect(coresOf({ scope: 'machine', root })).toBe(availableParallelism());
});

test('a CPU quota of version 1 counts as cores too', async () => {
  await machine(version1);
  expect(coresOf({ scope: 'group', root })).toBe(1);
});

test('a host without these files imposes no limit', async () => {
  expect(readHost({ scope: 'group', root })).toEqual({
    memoryFreeBytes: null,
    cpuPressure: null,
  });
});
