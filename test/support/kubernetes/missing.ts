import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findDocker } from '#test/support/servers/docker-engine.ts';

/** The program that starts a one-node cluster on this machine. */
export const CLUSTER_PROGRAM =
  process.env['KUBERNETES_UP'] ??
  fileURLToPath(new URL('../../../../shared/offline/kubernetes-up', import.meta.url));

/** Why the tests on a cluster cannot run here, in a few words; null: they can. */
export async function missingForCluster(): Promise<string | null> {
  if (process.env['TEST_KUBECONFIG']) return null;
  if (!existsSync(CLUSTER_PROGRAM)) return 'KUBERNETES_UP names no program that starts a cluster';
  if (process.getuid?.() !== 0) return 'only root can start a cluster';
  if (spawnSync('go', ['version']).status !== 0) return 'Go is missing to build a cluster';
  if (!(await findDocker())) return 'no Docker engine answers to build the image (DOCKER_HOST)';
  return null;
}
