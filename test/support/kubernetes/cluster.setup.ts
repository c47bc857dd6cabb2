/**
 * Before the tests of Kubernetes: a one-node cluster with the browsers' image, by the program that
 * KUBERNETES_UP names, or the cluster of TEST_KUBECONFIG, whose nodes have TEST_BROWSER_IMAGE.
 * Where neither can be had, the summary says why the tests were left out.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { browserImage, findDocker } from '#test/support/servers/docker-engine.ts';
import { kubectl, testNamespace } from './cluster.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const STAND_IN = process.env['KUBERNETES_UP'] ?? `${ROOT}../shared/offline/kubernetes-up`;
const SECCOMP = `${ROOT}deploy/browser/seccomp.json`;
const PROFILE = 'browser-session-service.json';

export async function setup(): Promise<void> {
  process.env['TEST_NAMESPACE'] = `bss-test-${process.pid}`;
  if (!process.env['TEST_KUBECONFIG']) {
    const missing = await findMissing();
    if (missing !== null) {
      process.env['TEST_KUBERNETES_LEFT_OUT'] = missing;
      return;
    }
    run('up');
    const image = await browserImage();
    run('load', image);
    installProfile();
    process.env['TEST_KUBECONFIG'] = run('kubeconfig').trim();
    process.env['TEST_KUBECTL'] = `${STAND_IN} kubectl`;
    process.env['TEST_LOAD_IMAGES'] = `${STAND_IN} load`;
    process.env['TEST_BROWSER_IMAGE'] = image;
  }
  kubectl('create', 'namespace', testNamespace());
}

export async function teardown(): Promise<void> {
  if (!process.env['TEST_KUBECONFIG']) return;
  kubectl('delete', 'namespace', testNamespace(), '--wait=true');
}

async function findMissing(): Promise<string | null> {
  if (!existsSync(STAND_IN)) return 'KUBERNETES_UP names no program that starts a cluster';
  if (process.getuid?.() !== 0) return 'a cluster can only be started by root';
  if (!(await findDocker())) return 'no Docker engine answers to build the image (DOCKER_HOST)';
  return null;
}

function run(...args: string[]): string {
  return execFileSync(STAND_IN, args, {
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
