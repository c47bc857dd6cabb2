import { connect } from 'puppeteer-core';
import { startShop, startShopIn } from '#test/support/clients/shop.ts';
import {
  containerOf,
  dockerHost,
  findDocker,
  removeNetwork,
} from '#test/support/servers/docker-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { firstReply } from './cdp-client.ts';
import { createFigures, interleave } from './harness/interleave.ts';
import type { Probe } from './harness/probe.ts';
import { send } from './http-client.ts';
import { atMost, row, timed, type Verdict } from './samples.ts';

const MEGABYTES = 20;
const NETWORK = `bss-bench-profiles-${process.pid}`;

type Options = { rounds: number; tiers: string };
type Session = { id: string; cdp_url: string; autoscaler_workload_id: string };
type Figure = 'cold' | 'with a profile' | 'end' | 'end with a save';

/**
 * Cold creates to their first CDP reply, without and with a profile of 20 MB, in turns on a service
 * that keeps no browser idle; and how long a session takes to end that saves it.
 */
export async function benchProfiles(
  print: (line?: string) => void,
  options: Options,
  probe: Probe,
): Promise<Verdict[]> {
  const verdicts = await measureKind('process', print, options, probe);
  if (!(await findDocker())) {
    print(`no Docker engine answers at ${dockerHost}: only process browsers are measured`);
    return verdicts;
  }
  try {
    return [...verdicts, ...(await measureKind('docker', print, options, probe))];
  } finally {
    await removeNetwork(NETWORK);
  }
}

async function measureKind(
  kind: 'process' | 'docker',
  print: (line?: string) => void,
  { rounds, tiers }: Options,
  probe: Probe,
): Promise<Verdict[]> {
  const none = { POOL_MIN_IDLE: '0', POOL_MAX_IDLE: '0' };
  const env = { BROWSERS: kind, DOCKER_NETWORK: NETWORK, TIERS: tiers, ...none };
  await using service = await startService(env);
  const { id, bytes } = await fillProfile(service, kind);
  const figures = createFigures<Figure>();
  const step = (figure: Figure, ending: Figure, body: object) => async (isCounted: boolean) => {
    const opened = await timed(async () => {
      const session = await create(service, body);
      (await firstReply(session.cdp_url)).terminate();
      return session;
    });
    const ended = await timed(() => end(service, opened.result));
    if (!isCounted) return;
    figures.add(figure, opened.ms);
    figures.add(ending, ended.ms);
  };
  const steps = [
    step('cold', 'end', {}),
    step('with a profile', 'end with a save', { profile: { id, save: true } }),
  ];
  for (const warmUp of steps) await warmUp(false);
  const counted = steps.map((each) => () => each(true));
  await interleave(counted, rounds, () => probe.take());
  print(`${kind} browsers, ${(bytes / 1e6).toFixed(1)} MB stored, milliseconds`.padEnd(44));
  print(row('create, cold: POST → first CDP reply', figures.of('cold')));
  print(row('the same with the profile', figures.of('with a profile')));
  print(row('DELETE → stopped', figures.of('end')));
  print(row('the same with a save', figures.of('end with a save')));
  const ratio = figures.of('with a profile').p50 / figures.of('cold').p50;
  return [atMost(`${kind}: create with a profile of ${MEGABYTES} MB ÷ cold`, ratio, 1.5)];
}

/** Saves a profile whose pages have stored that much, which cannot be compressed. */
async function fillProfile(service: RunningService, kind: 'process' | 'docker') {
  const { body: profile } = await service.request('POST', '/api/profiles', { name: 'bench' });
  const session = await create(service, { profile: { id: profile.id, save: true } });
  using shop = await startShop();
  const workload = session.autoscaler_workload_id;
  const origin = kind === 'docker' ? startShopIn(containerOf(workload)) : shop.origin;
  const browser = await connect({ browserWSEndpoint: session.cdp_url });
  const [page] = await browser.pages();
  await page?.goto(origin);
  await page?.evaluate(`megabytes(${MEGABYTES})`);
  await browser.disconnect();
  await end(service, session);
  const { body: saved } = await service.request('GET', `/api/profiles/${profile.id}`);
  const bytes = Number(saved.versions[0]?.bytes);
  if (!(bytes > MEGABYTES * 1e6)) throw new Error(`the profile has only ${bytes} bytes`);
  return { id: String(profile.id), bytes };
}

async function create(service: RunningService, asked: object): Promise<Session> {
  const url = `${service.apiUrl}/api/sessions`;
  const { status, text } = await send('POST', url, JSON.stringify({ duration: '10m', ...asked }));
  const session = JSON.parse(text) as Session & { status: string };
  if (status !== 201 || session.status !== 'active') throw new Error(`create: ${status} ${text}`);
  return session;
}

async function end(service: RunningService, { id }: Session): Promise<void> {
  await send('DELETE', `${service.apiUrl}/api/sessions/${id}`);
  await eventually(
    async () => (await service.request('GET', `/api/sessions/${id}`)).body.status === 'stopped',
    'the session has stopped',
  );
}
