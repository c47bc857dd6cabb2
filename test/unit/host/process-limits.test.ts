import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fitting, readProcessLimits } from '#src/kernel/host/process-limits.ts';

const GIB = 1024 ** 3;
const MEMINFO = 'MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'bss-limits-'));
});
afterEach(() => rm(root, { recursive: true }));

/** Writes the kernel's files, by path. */
async function machine(files: Record<string, string | number>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), `${text}\n`);
  }
}

test('the lowest limit of the process’s control groups and of those above counts', async () => {
  await machine({
    'proc/meminfo': MEMINFO,
    'proc/self/cgroup': '0::/app.slice/bss.service',
    'sys/fs/cgroup/app.slice/bss.service/memory.max': 'max',
    'sys/fs/cgroup/app.slice/bss.service/pids.max': 512,
    'sys/fs/cgroup/app.slice/memory.max': 2 * GIB,
    'sys/fs/cgroup/app.slice/pids.max': 4_096,
  });
  expect(readProcessLimits(root)).toEqual({ memoryBytes: 2 * GIB, pids: 512 });
});

test('control groups of version 1 have a hierarchy for each', async () => {
  await machine({
    'proc/meminfo': MEMINFO,
    'proc/self/cgroup': '7:pids:/docker/abc\n4:memory:/docker/abc\n3:cpuset:/\n0::/',
    'sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': GIB,
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712',
    'sys/fs/cgroup/pids/docker/abc/pids.max': 300,
  });
  expect(readProcessLimits(root)).toEqual({ memoryBytes: GIB, pids: 300 });
});

test('without control groups the machine’s memory counts, and no number of processes', async () => {
  await machine({ 'proc/meminfo': MEMINFO, 'proc/self/cgroup': '0::/' });
  expect(readProcessLimits(root)).toEqual({ memoryBytes: 16 * GIB, pids: Infinity });
});

test('where nothing can be read nothing is limited', () => {
  expect(readProcessLimits(root)).toEqual({ memoryBytes: Infinity, pids: Infinity });
  expect(fitting(Infinity, { eachBytes: 1, least: 1, most: 200 })).toBe(200);
});
