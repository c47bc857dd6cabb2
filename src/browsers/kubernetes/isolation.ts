import { createSecretKey, randomBytes } from 'node:crypto';
import type { V1EnvVar } from '@kubernetes/client-node';
import { sleep } from '#src/kernel/async/sleep.ts';
import { linkKeyText } from '#src/browsers/link/browser-link.ts';
import { checkLink } from '../link-check.ts';
import { LISTEN, TRY_ALL } from '../probe-scripts.ts';
import type { Cluster } from './cluster.ts';
import { CDP_PORT, VNC_PORT } from './naming.ts';
import type { PodOptions } from './pod.ts';
import { removeLeftProbes, runProbe, startProbe, type RunningProbe } from './probe.ts';

/** A session reaches what it must not, or is reached by what must not. */
export class NotIsolated extends Error {
  override readonly name = 'NotIsolated';
}

/**
 * Verifies that the namespace's NetworkPolicies are in force. A refused packet looks as one to an
 * address without a host, so all targets are known to listen:
 * - from a session, the API server, its node's kubelet, and another session are not reached;
 * - from a Pod that is no session, a session is not reached;
 * - from this process, a session answers its key, and neither another key nor plain TCP;
 * - from a session without a way out, the name server is not reached either, where a session with
 *   one reaches it: then `isClosable`.
 * @throws NotIsolated naming what was reached
 */
export async function checkIsolation(
  cluster: Cluster,
  options: PodOptions,
): Promise<{ isClosable: boolean }> {
  await removeLeftProbes(cluster);
  const key = createSecretKey(randomBytes(32));
  await using neighbour = await startProbe(cluster, options, {
    egress: 'open',
    script: LISTEN,
    env: [{ name: 'LINK_KEY', value: linkKeyText(key) }],
  });
  const { address } = await neighbour.until((state) => state.address !== null);
  const host = address ?? '';
  await untilListening(neighbour);
  const sessions = [CDP_PORT, VNC_PORT].map((port) => `tcp ${host} ${port}`);
  const inside = [...sessions, 'tcp $API $API_PORT', 'tcp $NODE 10250'];
  const [open, closed, other, ...links] = await Promise.all([
    tryFrom(cluster, options, 'open', { forbidden: inside, allowed: [RESOLVER] }),
    tryFrom(cluster, options, 'closed', { forbidden: [...inside, RESOLVER], allowed: [] }),
    tryFrom(cluster, options, null, { forbidden: sessions, allowed: [] }),
    ...[CDP_PORT, VNC_PORT].map((port) => checkLink({ host, port, linkKey: key })),
  ]);
  const wrong = [
    ...links.filter((one) => one !== null),
    ...reached(open, inside).map((target) => `a session reaches ${target}`),
    ...reached(other, sessions).map((target) => `a Pod that is no session reaches ${target}`),
  ];
  if (wrong.length > 0) throw new NotIsolated(wrong.join('; '));
  const isResolving = reached(open, [RESOLVER]).length > 0;
  return { isClosable: isResolving && reached(closed, [...inside, RESOLVER]).length === 0 };
}

/** The first name server of the Pod. */
const RESOLVER = 'tcp $RESOLVER 53';
const SILENT_FOR_S = 3;
/**
 * A plugin may apply the policies a moment after a Pod has started (kube-router: up to 0.5 s). A
 * browser has one blank page then, and no session.
 */
const IN_FORCE_WITHIN_S = 5;
const LOOK_EVERY_MS = 100;

const ENVIRONMENT: V1EnvVar[] = [
  { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
];
/** The kubelet gives each container the address of the API server. */
const RESOLVED = `
API=$KUBERNETES_SERVICE_HOST API_PORT=$KUBERNETES_SERVICE_PORT
RESOLVER=$(sed -n 's/^nameserver //p' /etc/resolv.conf | head -n 1)
export API API_PORT RESOLVER
`;

/** Tries the forbidden targets until none is reached, then the allowed ones. */
const TRY = `
try_all() { ${TRY_ALL}
}
forbidden=("\${@:1:FORBIDDEN}")
said=$(try_all "\${forbidden[@]}")
while grep -q ': reached$' <<<"$said" && [ $SECONDS -lt ${IN_FORCE_WITHIN_S} ]; do
  sleep 0.2
  said=$(try_all "\${forbidden[@]}")
done
echo "$said"
try_all "\${@:FORBIDDEN + 1}"
`;

/** Tries targets from a new Pod. @returns the answer to each */
async function tryFrom(
  cluster: Cluster,
  options: PodOptions,
  egress: 'open' | 'closed' | null,
  { forbidden, allowed }: { forbidden: readonly string[]; allowed: readonly string[] },
): Promise<Map<string, string>> {
  const targets = [...forbidden, ...allowed];
  const lines = await runProbe(cluster, options, {
    egress,
    script: RESOLVED + TRY,
    args: targets.map((target) => `${target} ${SILENT_FOR_S}`),
    env: [...ENVIRONMENT, { name: 'FORBIDDEN', value: `${forbidden.length}` }],
  });
  const answers = lines.map((line) => line.split(': ', 2) as [string, string]);
  if (answers.length !== targets.length)
    throw new NotIsolated(
      `the Pod of a check told ${answers.length} answers, not ${targets.length}`,
    );
  return new Map(answers);
}

function reached(answers: Map<string, string>, targets: readonly string[]): string[] {
  return targets.filter((target) => answers.get(target) === 'reached');
}

async function untilListening(neighbour: RunningProbe): Promise<void> {
  // Ends also where the Pod has ended, at the latest by itself.
  const isListening = async () => {
    await neighbour.until(({ phase }) => phase === 'running');
    return (await neighbour.lines()).includes('listening');
  };
  while (!(await isListening())) await sleep(LOOK_EVERY_MS);
}
