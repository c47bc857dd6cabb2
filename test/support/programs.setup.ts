/**
 * Before all tests: the programs they run are there, installed where they were missing, and it is
 * known whether there is a Docker engine; where there is one, it has the browsers' image.
 */
import { ensurePrograms } from '#src/embedded/programs.ts';
import {
  findDocker,
  prepareDocker,
  removeNetwork,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';

/** Tests find a program by the same variable that an operator would set. */
const VARIABLES = {
  'nats-server': 'NATS_SERVER',
  'redis-server': 'REDIS_SERVER',
  chromium: 'CHROMIUM',
  Xtigervnc: 'XTIGERVNC',
  vncpasswd: 'VNCPASSWD',
} as const;

export async function setup(): Promise<void> {
  const names = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];
  const paths = await ensurePrograms(names, (line) => console.error(line));
  for (const name of names) process.env[VARIABLES[name]] = paths[name];
  process.env['TEST_DOCKER'] = (await findDocker()) ? 'yes' : 'no';
  process.env['TEST_DOCKER_NETWORK'] = `bss-test-${process.pid}`;
  if (process.env['TEST_DOCKER'] === 'yes') await prepareDocker();
}

export async function teardown(): Promise<void> {
  if (process.env['TEST_DOCKER'] === 'yes') await removeNetwork(testNetwork());
}
