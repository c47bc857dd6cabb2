/**
 * Before a run that is about containers: finds out whether a Docker engine answers, and builds the
 * browser image there. Workers inherit the environment.
 */
import { removeContainers } from './containers.ts';
import {
  findDocker,
  prepareDocker,
  removeLeftNetworks,
  removeNetwork,
  testNetwork,
} from './docker-engine.ts';

export async function setup(): Promise<void> {
  process.env['TEST_DOCKER'] = (await findDocker()) ? 'yes' : 'no';
  process.env['TEST_DOCKER_NETWORK'] = `bss-test-${process.pid}`;
  process.env['TEST_RUN'] = String(process.pid);
  if (process.env['TEST_DOCKER'] !== 'yes') return;
  removeContainers();
  await removeLeftNetworks();
  await prepareDocker();
}

export async function teardown(): Promise<void> {
  if (process.env['TEST_DOCKER'] !== 'yes') return;
  removeContainers();
  await removeNetwork(testNetwork());
}
