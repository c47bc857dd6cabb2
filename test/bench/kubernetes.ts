import { kubectlBeside, loadedImage, podsEnvironment } from '#test/support/kubernetes/cluster.ts';
import { setup, teardown } from '#test/support/kubernetes/cluster.setup.ts';
import { missingForCluster } from '#test/support/kubernetes/missing.ts';
import { byHand, untilFirstReply } from './image-by-hand.ts';
import { keepIdle, measureCold, measureLives, type Bare, withService } from './sessions.ts';
import { atMost, row, summarize, timed, type Verdict } from './samples.ts';

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
    const lives = await withService({ ...real, ...keepIdle(1) }, (one) =>
      measureLives(one, rounds),
    );
    print(row('create, warm: POST → active', lives.create));
    print(row('create, warm: POST → first CDP reply', lives.firstReply));
    print(row('release: DELETE → answer', lives.release));
    print(row('release: DELETE → a browser waits again', lives.capacityBack));
    const cold = await withService({ ...real, ...keepIdle(0) }, (none) =>
      measureCold(none, rounds),
    );
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
  const { linkKey, values, command, flags } = byHand();
  const variables = values.map((one) => `--env=${one}`);
  const image = [`--image=${loadedImage()}`, '--image-pull-policy=IfNotPresent'];
  const run = [...image, '--restart=Never', ...variables, '--command', '--', ...command, ...flags];
  await kubectlBeside('run', pod, ...run);
  await kubectlBeside('wait', 'pod', pod, '--for=condition=Ready', '--timeout=120s');
  const host = await kubectlBeside('get', 'pod', pod, '--output=jsonpath={.status.podIP}');
  const address = { host, port: LINK_PORT, linkKey };
  await untilFirstReply(address);
}
