import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createProcessBrowsers } from '#src/browsers/process/process-browsers.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import { pidSpace, processStart } from '#src/browsers/process/tree.ts';
import {
  openPlace,
  openProcessBrowsers,
  realPrograms,
} from '#test/support/browsers/browsers.fixture.ts';

type Place = Awaited<ReturnType<typeof openPlace>>;

const spec = { vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };

describe('after the service was killed', () => {
  test('its browsers are found and can be stopped', async () => {
    await using left = await leaveBrowser('wl_left');
    expect(left.place.processes().length).toBeGreaterThan(5);
    expect(await left.browsers.list()).toMatchObject([{ workloadId: 'wl_left', adoptable: null }]);
    await left.browsers.stop('wl_left');
    expect(left.place.traces()).toEqual([]);
    expect(await left.browsers.list()).toEqual([]);
  });

  test('its crash reporters are ended with it, even if they cannot react', async () => {
    await using left = await leaveBrowser('wl_left');
    const reporters = left.place.processes().filter(({ args }) => /crashpad/.test(args[0] ?? ''));
    expect(reporters.length).toBeGreaterThan(0);
    for (const { pid } of reporters) process.kill(pid, 'SIGSTOP');
    await left.browsers.stop('wl_left');
    expect(left.place.traces()).toEqual([]);
  });

  test('the files of a browser that has ended meanwhile are removed', async () => {
    await using left = await leaveBrowser('wl_ended');
    for (const { pid } of left.place.processes()) killIfThere(pid);
    await expect.poll(() => left.place.processes()).toEqual([]);
    expect(await left.browsers.list()).toMatchObject([{ workloadId: 'wl_ended', adoptable: null }]);
    await left.browsers.stop('wl_ended');
    expect(left.place.traces()).toEqual([]);
  });

  test('the keymap of a display that was killed during its start is removed', async () => {
    await using place = await openPlace();
    const display = 50_000 + (process.pid % 10_000);
    const keymap = `/tmp/server-${display}.xkm`;
    onTestFinished(() => rm(keymap, { force: true }));
    await writeFile(keymap, 'half of it');
    await leaveRecord(place, { display, pid: 2 ** 30 });
    await using browsers = await openIn(place);
    await browsers.stop('wl_old');
    expect(existsSync(keymap)).toBe(false);
  });

  test('an unrelated process that has the pid of one of its programs is not killed', async () => {
    const unrelated = spawn('sleep', ['100'], { detached: true });
    onTestFinished(() => void unrelated.kill('SIGKILL'));
    await using place = await openPlace();
    await leaveRecord(place, { display: 999, pid: unrelated.pid ?? 0 });
    await using browsers = await openIn(place);
    expect(await browsers.list()).toMatchObject([{ workloadId: 'wl_old', adoptable: null }]);
    await browsers.stop('wl_old');
    expect(place.traces()).toEqual([]);
    expect([unrelated.exitCode, unrelated.signalCode]).toEqual([null, null]);
  });

  test('what one of its programs starts while it is being ended is ended, too', async () => {
    await using place = await openPlace();
    const program = spawn('bash', ['-c', STARTS_OTHERS], {
      detached: true,
      env: { ...process.env, TMPDIR: place.tmp },
      stdio: 'ignore',
    });
    const { pid = 0 } = program;
    onTestFinished(() => killIfThere(-pid));
    await leaveRecord(place, { display: 999, pid, startTicks: processStart(pid) ?? 0 });
    await using browsers = await openIn(place);
    await expect.poll(() => place.processes().length).toBeGreaterThan(10);
    await browsers.stop('wl_old');
    expect(place.traces()).toEqual([]);
  });

  test('the browsers of another running service are neither listed nor stopped', async () => {
    await using opened = await openProcessBrowsers();
    await opened.browsers.launch({ ...spec, workloadId: 'wl_others' });
    await using second = await createProcessBrowsers({
      ...realPrograms(),
      stateDir: opened.stateDir,
    });
    expect(await second.list()).toEqual([]);
    await second.stop('wl_others');
    expect(opened.processes().length).toBeGreaterThan(5);
  });
});

test('a stop during a launch does not succeed before all of the browser is removed', async () => {
  await using opened = await openProcessBrowsers();
  const { browsers, stateDir, traces } = opened;
  const launched = browsers.launch({ ...spec, workloadId: 'wl_cancelled' }).catch(String);
  const record = join(stateDir, 'wl_cancelled.json');
  await expect.poll(() => existsSync(record)).toBe(true);
  // What the browser's user cannot remove, nor its owner.
  const { folder } = JSON.parse(readFileSync(record, 'utf8')) as { folder: string };
  const stuck = join(folder, 'stuck');
  await mkdir(stuck);
  await writeFile(join(stuck, 'file'), '');
  await chmod(stuck, 0o500);
  await expect(browsers.stop('wl_cancelled')).rejects.toThrow('ENOTEMPTY');
  await launched;
  await chmod(stuck, 0o700);
  await rm(stuck, { recursive: true });
  await browsers.stop('wl_cancelled');
  expect(traces()).toEqual([]);
});

/** Kills a process that may have ended with another one. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A program that is killed before it has started all of them. */
const STARTS_OTHERS = 'for ((i = 0; i < 2000; i++)); do sleep 100 & done; wait';

type Left = { display: number; pid: number; startTicks?: number };

/** Writes the record of a browser `wl_old` whose program had that pid; its service is gone. */
async function leaveRecord(place: Place, { display, pid, startTicks = 1 }: Left) {
  const folder = join(place.tmp, 'bss-browser-gone');
  await mkdir(folder);
  const gone = { pid, startTicks: 1 };
  const sessions = [{ pid, startTicks }];
  const record = { workloadId: 'wl_old', folder, display, sessions };
  const owner = { instance: 'gone', owner: gone, pidSpace: pidSpace() };
  await writeFile(join(place.stateDir, 'wl_old.json'), JSON.stringify({ ...record, ...owner }));
}

/** A service process that launches one browser, prints that, and then waits to be killed. */
const OWNER = `
  const { adapter, options, spec } = JSON.parse(process.argv[1]);
  const { createProcessBrowsers } = await import(adapter);
  const browsers = await createProcessBrowsers(options);
  await browsers.launch(spec);
  console.log('launched');
  setInterval(() => {}, 1000);
`;

/** Launches a browser in a service process, kills that, and opens the next one's browsers. */
async function leaveBrowser(
  workloadId: string,
): Promise<AsyncDisposable & { place: Place; browsers: Browsers }> {
  const place = await openPlace();
  const adapter = import.meta.resolve('#src/browsers/process/process-browsers.ts');
  const options = { ...realPrograms(), stateDir: place.stateDir };
  const task = JSON.stringify({ adapter, options, spec: { ...spec, workloadId } });
  const owner = spawn(process.execPath, ['--input-type=module', '-e', OWNER, task], {
    env: { ...process.env, TMPDIR: place.tmp },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  const browsers = await openIn(place);
  return {
    place,
    browsers,
    [Symbol.asyncDispose]: async () => {
      await browsers.stop(workloadId);
      await browsers[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

function openIn(place: Place): Promise<Browsers> {
  const options = { ...realPrograms(), stateDir: place.stateDir };
  return place.within(() => createProcessBrowsers(options));
}
