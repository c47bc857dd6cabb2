import { createSecretKey, randomBytes } from 'node:crypto';
import { linkKeyText } from '#src/browser-link/browser-link.ts';
import { chromiumFlags } from '#src/provisioner/browsers/chromium/flags.ts';
import { readVersion } from '#src/provisioner/browsers/chromium/version.ts';
import { kubectlBeside, loadedImage, podsEnvironment } from '#test/support/kubernetes/cluster.ts';
import { setup, teardown } from '#test/support/kubernetes/cluster.setup.ts';
import { missingForCluster } from '#test/support/kubernetes/missing.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { firstReply } from './cdp-client.ts';
import { measureCold, measureLives, type Bare } from './sessions.ts';
import { atMost, row, summarize, timed, type Verdict } from './samples.ts';

const SCREEN = { width: 1280, height: 800 };
/** Interval between attempts to get a CDP answer. */
const POLL_MS = 5;
const LINK_PORT = 9223;

/**
 * Sessions on browsers in Pods, beside the same image run by hand: `kubectl run`, `kubectl wait`
 * until the Pod is ready, then polled until CDP answers; and `kubectl delete pod --now`.
 */
export async function benchKubernetes(
  print: (line?: string) => void,
  { rounds, tiers }: { rounds: number; tiers: string },
): Promise<Verdict[]> {
  const missing = await missingForCluster();
  if (missing !== null) {
    print(`${missing}: nothing to measure`);
    return [];
  }
  await setup();
  const real = { ...podsEnvironment(), TIERS: tiers, POOL_MAX: '10' };
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  try {
    const plain = await measurePlain(rounds);
    print(row('kubectl run → first CDP reply', plain.launch));
    print(row('kubectl delete pod --now', plain.exit));
    const lives = await withService({ ...real, ...idle(1) }, (one) => measureLives(one, rounds));
    print(row('create, warm: POST → active', lives.create));
    print(row('create, warm: POST → first CDP reply', lives.firstReply));
    print(row('release: DELETE → answer', lives.release));
    print(row('release: DELETE → a browser waits again', lives.capacityBack));
    const cold = await withService({ ...real, ...idle(0) }, (none) => measureCold(none, rounds));
    print(row('create, cold: POST → first CDP reply', cold));
    const run = plain.launch.p50;
    return [
      atMost('Kubernetes: warm → first reply ÷ kubectl run', lives.firstReply.p50 / run, 0.05),
      atMost('Kubernetes: cold → first reply ÷ kubectl run', cold.p50 / run, 1.2),
    ];
  } finally {
    await teardown();
  }
}

/** Resolves once this many browsers are idle, whatever the recent demand. */
function idle(count: number): Record<string, string> {
  return { POOL_MIN_IDLE: `${count}`, POOL_MAX_IDLE: `${count}` };
}

async function withService<Result>(
  env: Record<string, string>,
  measure: (service: RunningService) => Promise<Result>,
): Promise<Result> {
  await using service = await startService(env);
  return await measure(service);
}

/** The image run by hand: to its first CDP reply, and to its removal. */
async function measurePlain(rounds: number): Promise<Bare> {
  const launches: number[] = [];
  const exits: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const pod = `bench-${process.pid}-${round}`;
    const launch = await timed(() => runPlain(pod));
    const exit = await timed(() => kubectlBeside('delete', 'pod', pod, '--now', '--wait=true'));
    // The first one warms up.
    if (round === 0) continue;
    launches.push(launch.ms);
    exits.push(exit.ms);
  }
  return { launch: summarize(launches), exit: summarize(exits) };
}

async function runPlain(pod: string): Promise<void> {
  const { width, height } = SCREEN;
  const linkKey = createSecretKey(randomBytes(32));
  const values = [`LINK_KEY=${linkKeyText(linkKey)}`, 'VNC_PASSWORD=passw0rd'];
  const variables = [...values, `SCREEN_SIZE=${width}x${height}`].map((one) => `--env=${one}`);
  const image = [`--image=${loadedImage()}`, '--image-pull-policy=IfNotPresent'];
  const spec = { workloadId: '', vncPassword: '', screen: SCREEN };
  const flags = ['--', ...chromiumFlags(spec)];
  await kubectlBeside('run', pod, ...image, '--restart=Never', ...variables, ...flags);
  await kubectlBeside('wait', 'pod', pod, '--for=condition=Ready', '--timeout=120s');
  const host = await kubectlBeside('get', 'pod', pod, '--output=jsonpath={.status.podIP}');
  const address = { host, port: LINK_PORT, linkKey };
  for (;;) {
    try {
      const { webSocketDebuggerUrl } = await readVersion(address, AbortSignal.timeout(5_000));
      (await firstReply(webSocketDebuggerUrl, address)).terminate();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
