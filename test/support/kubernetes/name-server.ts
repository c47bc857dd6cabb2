import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { lookup, Resolver } from 'node:dns/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '#test/support/service/service.ts';
import { kubeconfig } from './cluster.ts';
import { startProgram } from './go-programs.ts';

const CLUSTER_DOMAIN = 'cluster.local';

/**
 * The cluster's name server, for Pods whose dnsConfig names it: a cluster without one of its own.
 * @param address of the node, as Pods reach it
 */
export async function startNameServer(
  address: string,
): Promise<{ address: string } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'coredns-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'Corefile');
  await writeFile(
    file,
    `.:53 {
      bind ${address}
      kubernetes ${CLUSTER_DOMAIN} {
        kubeconfig ${kubeconfig()}
      }
      forward . /etc/resolv.conf
    }`,
  );
  stack.use(startProgram('coredns', ['-conf', file]));
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([address]);
  const name = `kubernetes.default.svc.${CLUSTER_DOMAIN}`;
  const answers = () => resolver.resolve4(name).catch(() => null);
  await eventually(answers, 'the name server of the cluster answers');
  const all = stack.move();
  return { address, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** The address of this machine in the network of the Pods, by the node's own name. */
export async function nodeAddress(ask: (...args: string[]) => string): Promise<string> {
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const { address } = await lookup(ask('get', 'nodes', '-o', `jsonpath=${path}`));
  return address;
}
