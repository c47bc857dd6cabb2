import { kubeconfig } from './cluster.ts';
import { startProgram } from './go-programs.ts';

/** Enforces NetworkPolicies on a node whose network plugin does not. Root's alone. */
export function enforcePolicies(node: string): { said(): string } & AsyncDisposable {
  return startProgram('kube-network-policies', [
    `--kubeconfig=${kubeconfig()}`,
    `--hostname-override=${node}`,
    '--nfqueue-id=98',
    '--metrics-bind-address=127.0.0.1:19080',
    '--v=2',
  ]);
}
