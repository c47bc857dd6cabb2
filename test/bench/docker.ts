import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { ensureBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { dockerHost, findDocker, removeNetwork } from '#test/support/servers/docker-engine.ts';
import { byHand, untilFirstReply } from './image-by-hand.ts';
import {
  keepIdle,
  measureCold,
  measureLives,
  measureTogether,
  type Bare,
  withService,
} from './sessions.ts';
import { atMost, row, summarize, timed, type Verdict } from './samples.ts';

const SECCOMP = fileURLToPath(new URL('../../deploy/browser/seccomp.json', import.meta.url));
const NETWORK = `bss-bench-${process.pid}`;
const TOGETHER = 4;

/**
 * Sessions on Docker browsers, beside the same image run by hand: `docker run` with a published
 * port, polled until CDP answers, and `docker rm -f`.
 */
export async function benchDocker(
  print: (line?: string) => void,
  { rounds, tiers }: { rounds: number; tiers: string },
): Promise<Verdict[]> {
  if (!(await findDocker())) {
    print(`no Docker engine answers at ${dockerHost}: nothing to measure`);
    return [];
  }
  const engine = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
  const image = await ensureBrowserImage(engine, null, print);
  const few = Math.ceil(rounds / 4);
  const real = { BROWSERS: 'docker', DOCKER_NETWORK: NETWORK, TIERS: tiers, POOL_MAX: '10' };
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  try {
    const plain = await measurePlain(image, rounds);
    print(row('docker run → first CDP reply', plain.launch));
    print(row('docker rm -f', plain.exit));
    const lives = await withService({ ...real, ...keepIdle(1) }, (one) =>
      measureLives(one, rounds),
    );
    print(row('create, warm: POST → active', lives.create));
    print(row('create, warm: POST → first CDP reply', lives.firstReply));
    print(row('release: DELETE → answer', lives.release));
    print(row("release: DELETE → client's CDP socket closed", lives.socketClosed));
    print(row('release: DELETE → a browser waits again', lives.capacityBack));
    const cold = await withService({ ...real, ...keepIdle(0) }, (none) =>
      measureCold(none, rounds),
    );
    print(row('create, cold: POST → first CDP reply', cold));
    const plainFour = await measurePlain(image, few, TOGETHER);
    print(row(`docker run, ${TOGETHER} at once → first CDP reply`, plainFour.launch));
    const four = await withService({ ...real, ...keepIdle(TOGETHER) }, (service) =>
      measureTogether(service, TOGETHER, few),
    );
    print(row(`create, warm, ${TOGETHER} at once → first CDP reply`, four));
    const turnover = plain.exit.p50 + plain.launch.p50;
    const run = plain.launch.p50;
    return [
      atMost('Docker: warm create → first reply ÷ docker run', lives.firstReply.p50 / run, 0.05),
      atMost('Docker: cold → first reply ÷ docker run', cold.p50 / run, 1.15),
      atMost('Docker: 4 at once p95 ÷ 4 docker runs p50', four.p95 / plainFour.launch.p50, 0.06),
      atMost('Docker: capacity back ÷ (rm + run)', lives.capacityBack.p50 / turnover, 1.3),
    ];
  } finally {
    await removeNetwork(NETWORK);
  }
}

/** The image run by hand: to its first CDP reply, and to its removal. */
async function measurePlain(image: string, rounds: number, atOnce = 1): Promise<Bare> {
  const launches: number[] = [];
  const exits: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const runs = await Promise.all(
      Array.from({ length: atOnce }, () => timed(() => runPlain(image))),
    );
    for (const { ms, result } of runs) {
      const exit = await timed(() => docker('rm', '-f', result));
      if (round === 0) continue;
      launches.push(ms);
      exits.push(exit.ms);
    }
  }
  return { launch: summarize(launches), exit: summarize(exits) };
}

/** @returns the container's id */
async function runPlain(image: string): Promise<string> {
  const { linkKey, values, command, flags } = byHand();
  const variables = values.flatMap((one) => ['-e', one]);
  const options = ['-d', '-p', '127.0.0.1::9223', '--security-opt', `seccomp=${SECCOMP}`];
  const [program = '', ...given] = command;
  const run = ['--entrypoint', program, image, ...given, ...flags];
  const id = await docker('run', ...options, ...variables, ...run);
  const [, port] = (await docker('port', id, '9223/tcp')).split(':');
  const address = { host: '127.0.0.1', port: Number(port), linkKey };
  await untilFirstReply(address);
  return id;
}

async function docker(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', ['-H', dockerHost, ...args]);
  return stdout.trim();
}
