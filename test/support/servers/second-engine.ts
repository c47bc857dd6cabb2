import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { findDocker } from './docker-engine.ts';
import { eventually } from '#test/support/service/service.ts';
import { descendantsOf, processesAt } from '#test/support/service/processes.ts';

/**
 * A second machine for browsers: a Docker engine with its own data and its own network namespace,
 * which this machine reaches by one address.
 */
export type SecondEngine = AsyncDisposable & {
  /** The value for DOCKER_HOST. */
  host: string;
  /** The address of its machine, for DOCKER_PUBLISH. */
  address: string;
  /** Its own command line. */
  docker(...args: string[]): string;
  /** Kills the engine itself with -9; its containers continue to run. */
  kill(): Promise<void>;
  /** Starts it again, and waits until it answers. */
  restart(): Promise<void>;
};

const READY_WITHIN_MS = 60_000;
/** Numbers in this process, so that no two have the same name: the kernel is slow to remove one. */
let opened = 0;

/**
 * Starts it with the given images, copied from the first engine. Needs root.
 * @param more additional options of its daemon
 */
export async function openSecondEngine(
  images: readonly string[],
  more: readonly string[] = [],
): Promise<SecondEngine> {
  await using stack = new AsyncDisposableStack();
  opened += 1;
  const name = `bsse${process.pid}${opened}`;
  const [outside, inside] = [`${name}o`, `${name}i`];
  // One of the 16384 networks of four addresses in 10.98.0.0/16.
  const block = process.pid % 16384;
  const address = (host: number) => `10.98.${block >> 6}.${(block & 63) * 4 + host}`;
  ip('netns', 'add', name);
  stack.defer(() => ip('netns', 'del', name));
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name);
  stack.defer(() => ip('link', 'del', outside));
  ip('addr', 'add', `${address(1)}/30`, 'dev', outside);
  ip('link', 'set', outside, 'up');
  ip('-n', name, 'addr', 'add', `${address(2)}/30`, 'dev', inside);
  for (const link of [inside, 'lo']) ip('-n', name, 'link', 'set', link, 'up');
  ip('-n', name, 'route', 'add', 'default', 'via', address(1));

  const folder = await mkdtemp(join(tmpdir(), 'bss-engine-'));
  stack.defer(async () => {
    await endBelow(folder);
    unmountBelow(folder);
    await rm(folder, { recursive: true, force: true });
  });
  const host = `unix://${folder}/docker.sock`;
  let daemon = start(name, folder, more);
  stack.defer(() => end(daemon, 'SIGTERM'));
  const answers = () => eventually(() => findDocker(host), 'the engine answers', READY_WITHIN_MS);
  await answers();
  await copyImages(images, host);
  const all = stack.move();
  return {
    host,
    address: address(2),
    docker: (...args) => docker(host, ...args),
    async kill() {
      await end(daemon, 'SIGKILL');
      await endContainerd(folder);
    },
    async restart() {
      daemon = start(name, folder, more);
      await answers();
    },
    async [Symbol.asyncDispose]() {
      if (await findDocker(host)) await removeContainers(host);
      await all.disposeAsync();
    },
  };
}

function start(namespace: string, folder: string, more: readonly string[]): ChildProcess {
  // Not `ip netns exec`, which hides the control groups.
  const daemon = spawn(
    'nsenter',
    [`--net=/run/netns/${namespace}`, 'dockerd', '--host', `unix://${folder}/docker.sock`].concat(
      ['--data-root', `${folder}/data`, '--exec-root', `${folder}/run`],
      ['--pidfile', `${folder}/pid`, ...more],
    ),
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  daemon.stderr?.pipe(createWriteStream(join(folder, 'dockerd.log'), { flags: 'a' }));
  return daemon;
}

async function end(daemon: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  const ended = once(daemon, 'exit');
  daemon.kill(signal);
  await ended;
}

/**
 * containerd exits a little after its engine, and is listed as running until it is reaped. An
 * engine that starts before that would wait for its answers.
 */
async function endContainerd(folder: string): Promise<void> {
  const isIts = ({ command }: { command: string }) => /^\S*containerd --config/.test(command);
  const runs = () => processesAt(folder).some(isIts);
  await eventually(() => !runs(), 'its containerd has gone with it');
  await rm(join(folder, 'run/containerd/containerd.pid'), { force: true });
}

/** Processes of a killed engine that still run: containerd, and the shims of its containers. */
async function endBelow(folder: string): Promise<void> {
  const left = () => processesAt(folder).filter(({ command }) => command.includes(`${folder}/`));
  const pids = left().flatMap(({ pid }) => [...descendantsOf(pid).map((one) => one.pid), pid]);
  for (const pid of new Set(pids)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended with the one before it.
    }
  }
  await eventually(() => left().length === 0, 'nothing of the engine runs');
}

/** An engine leaves the mounts of its networks behind. */
function unmountBelow(folder: string): void {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const paths = mounts.map((line) => line.split(' ')[1] ?? '');
  for (const path of paths.filter((one) => one.startsWith(`${folder}/`)).toReversed())
    execFileSync('/bin/umount', ['-l', path]);
}

async function copyImages(images: readonly string[], host: string): Promise<void> {
  const save = spawn('docker', ['save', ...images], { stdio: ['ignore', 'pipe', 'inherit'] });
  const load = spawn('docker', ['-H', host, 'load', '-q'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const loaded = once(load, 'exit');
  await pipeline(save.stdout, load.stdin);
  const [code] = (await loaded) as [number | null];
  if (code !== 0) throw new Error(`docker load ended with ${code}`);
}

/** Removes all its containers. The engine refuses a removal while another one is under way. */
async function removeContainers(host: string): Promise<void> {
  await eventually(() => {
    const left = docker(host, 'ps', '-aq').split('\n').filter(Boolean);
    if (left.length === 0) return true;
    try {
      docker(host, 'rm', '-fv', ...left);
    } catch (error) {
      if (!String(error).includes('already in progress')) throw error;
    }
    return false;
  }, 'its containers are gone');
}

function docker(host: string, ...args: string[]): string {
  return execFileSync('docker', ['-H', host, ...args], { encoding: 'utf8' }).trim();
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
