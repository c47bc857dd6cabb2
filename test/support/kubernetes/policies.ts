import { execFileSync } from 'node:child_process';
import { kubeconfig } from './cluster.ts';
import { startProgram } from './go-programs.ts';

/** Enforces NetworkPolicies on a node whose network plugin does not. Root's alone. */
export function enforcePolicies(node: string): { said(): string } & AsyncDisposable {
  ensureIpset();
  const program = startProgram('kube-router', [
    `--kubeconfig=${kubeconfig()}`,
    `--hostname-override=${node}`,
    '--run-firewall=true',
    '--run-router=false',
    '--run-service-proxy=false',
    '--run-loadbalancer=false',
    '--health-port=0',
  ]);
  return {
    said: () => program.said(),
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]();
      removeRules();
    },
  };
}

/**
 * Its rules would go on to refuse Pods that it does not follow any more. Its own `--cleanup-config`
 * fails where the kernel has no IPVS.
 */
function removeRules(): void {
  const kept = run('iptables-save', '-t', 'filter')
    .split('\n')
    .filter((line) => !/KUBE-(ROUTER|POD-FW|NWPLCY)-/.test(line));
  execFileSync('iptables-restore', ['-T', 'filter'], { input: kept.join('\n') });
  const sets = run('ipset', 'list', '-n').split('\n');
  for (const name of sets.filter((one) => /^(KUBE-(SRC|DST)|kube-router)-/.test(one)))
    run('ipset', 'destroy', name);
}

function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8' });
}

/** kube-router keeps the addresses of Pods in sets of the kernel. */
function ensureIpset(): void {
  try {
    execFileSync('ipset', ['--version'], { stdio: 'ignore' });
  } catch {
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'ipset'], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
}
