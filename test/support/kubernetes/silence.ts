import { execFileSync } from 'node:child_process';

/**
 * Makes a program of the cluster on this machine stand still, as a machine that is gone does: its
 * connections stay open, and nothing answers. It goes on at the disposal.
 * @throws Error where this machine has none: the cluster is another one
 */
export function silence(program: 'kubelet' | 'kube-apiserver'): Disposable {
  const pid = Number(execFileSync('pgrep', ['-x', program], { encoding: 'utf8' }));
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}
