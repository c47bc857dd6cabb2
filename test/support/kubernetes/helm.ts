import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { kubeconfig, testNamespace } from './cluster.ts';
import { goProgram } from './go-programs.ts';

/** The folder of the chart. */
export const CHART = fileURLToPath(new URL('../../../deploy/helm', import.meta.url));

/** Runs helm. @returns what it printed, and what it warned of @throws Error with its message */
export function helm(...args: string[]): { printed: string; warned: string } {
  const { status, stdout, stderr, error } = spawnSync(goProgram('helm'), args, {
    encoding: 'utf8',
    ...options(),
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr.trim()} ${stdout.trim()}`);
  return { printed: stdout, warned: stderr.trim() };
}

/** The same beside the test, whose own requests go on meanwhile. @returns what it printed */
export async function helmBeside(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(goProgram('helm'), args, options());
  return stdout;
}

function options() {
  const env = { ...process.env, KUBECONFIG: kubeconfig(), HELM_NAMESPACE: testNamespace() };
  return { env, maxBuffer: 64 * 1024 ** 2 };
}
