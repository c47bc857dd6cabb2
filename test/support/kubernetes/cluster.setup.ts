/**
 * Before the tests of Kubernetes: a one-node cluster with the browsers' image, by the program that
 * KUBERNETES_UP names, or the cluster of TEST_KUBECONFIG, whose nodes have TEST_BROWSER_IMAGE.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { browserImage } from '#test/support/servers/docker-engine.ts';
import { kubectl, testNamespace } from './cluster.ts';
import { buildGoPrograms } from './go-programs.ts';
import { CLUSTER_PROGRAM } from './missing.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SECCOMP = `${ROOT}deploy/browser/seccomp.json`;
const PROFILE = 'browser-session-service.json';

export async function setup(): Promise<void> {
  process.env['TEST_NAMESPACE'] = `bss-test-${process.pid}`;
  if (!process.env['TEST_KUBECONFIG']) {
    // First: a connection to the Docker engine does not outlive the minutes of the builds.
    const image = await browserImage();
    run('up', '--gvisor');
    buildGoPrograms();
    run('load', image);
    installProfile();
    process.env['TEST_KUBECONFIG'] = run('kubeconfig').trim();
    process.env['TEST_KUBECTL'] = `${CLUSTER_PROGRAM} kubectl`;
    process.env['TEST_LOAD_IMAGES'] = `${CLUSTER_PROGRAM} load`;
    process.env['TEST_BROWSER_IMAGE'] = image;
  }
  kubectl('create', 'namespace', testNamespace());
}

export async function teardown(): Promise<void> {
  kubectl('delete', 'namespace', testNamespace(), '--wait=true');
}

function run(...args: string[]): string {
  return execFileSync(CLUSTER_PROGRAM, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** The kubelet looks for profiles by their file's name. */
function installProfile(): void {
  const named = `/tmp/${PROFILE}`;
  execFileSync('cp', [SECCOMP, named]);
  run('seccomp', named);
}
