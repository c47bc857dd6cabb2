import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

/** The cluster that `npm run test:kubernetes` has started, or that TEST_KUBECONFIG names. */

/** The kubeconfig of its administrator. @throws Error outside of that tier */
export function kubeconfig(): string {
  const { TEST_KUBECONFIG: file = '' } = process.env;
  if (file === '') throw new Error('these tests are run by npm run test:kubernetes');
  return file;
}

/** Whether these are the tests of Kubernetes. */
export function isOnKubernetes(): boolean {
  return (process.env['TEST_KUBECONFIG'] ?? '') !== '';
}

/** The namespace of one run of the tests. */
export function testNamespace(): string {
  return process.env['TEST_NAMESPACE'] ?? 'default';
}

/** The image that its nodes have. */
export function loadedImage(): string {
  return process.env['TEST_BROWSER_IMAGE'] ?? '';
}

/** Brings images of the Docker engine onto the nodes: a registry's work elsewhere. */
export function loadImages(...images: string[]): void {
  const { TEST_LOAD_IMAGES: program = '' } = process.env;
  if (program === '') throw new Error('TEST_LOAD_IMAGES: the nodes of this cluster take no images');
  const [name = '', ...args] = program.split(' ');
  const { status, stderr } = spawnSync(name, [...args, ...images], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}

/** The variables of a service whose browsers are Pods of the cluster. */
export function podsEnvironment(): Record<string, string> {
  return {
    BROWSERS: 'kubernetes',
    BROWSER_IMAGE: loadedImage(),
    KUBECONFIG: kubeconfig(),
    KUBERNETES_NAMESPACE: testNamespace(),
    // The cluster enforces no NetworkPolicies by itself.
    KUBERNETES_ISOLATION: 'best-effort',
    BROWSER_MEMORY_REQUEST_MB: '128',
    BROWSER_CPUS_REQUEST: '0.05',
  };
}

/** How kubectl is run as the administrator, in the namespace of the tests. */
export function kubectlCommand() {
  const [program = 'kubectl', ...first] = (process.env['TEST_KUBECTL'] ?? 'kubectl').split(' ');
  const env = { ...process.env, KUBECONFIG: kubeconfig() };
  return { program, first: [...first, '--namespace', testNamespace()], env };
}

/** Runs kubectl as the administrator. @returns its trimmed output @throws Error with its message */
export function kubectl(...args: string[]): string {
  const { status, stdout, stderr } = run(args);
  if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr.trim()}`);
  return stdout.trim();
}

/** What kubectl prints, also where it exits with an error: `auth can-i` does so after a no. */
export function kubectlSays(...args: string[]): string {
  return run(args).stdout.trim();
}

function run(args: readonly string[]) {
  const { program, first, env } = kubectlCommand();
  const ended = spawnSync(program, [...first, ...args], {
    encoding: 'utf8',
    env,
    maxBuffer: 64 * 1024 ** 2,
  });
  if (ended.error !== undefined) throw ended.error;
  return ended;
}

/** The same beside the test, whose own requests go on meanwhile. */
export async function kubectlBeside(...args: string[]): Promise<string> {
  const { program, first, env } = kubectlCommand();
  const { stdout } = await promisify(execFile)(program, [...first, ...args], { env });
  return stdout.trim();
}
