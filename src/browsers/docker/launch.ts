import type Docker from 'dockerode';
import { LaunchFailed } from '../browsers.ts';
import type { BrowserSpec } from '../browsers.ts';
import { parseListening } from '../chromium/flags.ts';
import { cdpReady } from '../chromium/ready.ts';
import type { Place } from '../place-engine.ts';
import { removeContainer, startContainer } from './container.ts';
import type { StartedContainer } from './container.ts';
import { bounded, messageOf } from './engine.ts';
import { CDP_PORT, EGRESS_PORT, VNC_PORT, WEBDRIVER_PORT } from './naming.ts';
import { putProfile } from './folders/profile-volume.ts';
import { putExtensions } from './folders/put-extensions.ts';
import { browserContainer, browserInput, endpointOf, webdriverOf } from './spec.ts';
import type { Confinement } from './spec.ts';
import { rfbReady } from '../rfb.ts';
import { boundLaunch, linkReady, orAborted, untilReady } from '../until-ready.ts';

export type Launched = Place & { containerId: string };

/**
 * Starts a browser in a new container and waits until it is ready.
 * @throws LaunchFailed also when `stopped` is aborted; the container is removed then, unless the
 * engine fails: a stop looks for it
 */
export async function launchContainer(
  docker: Docker,
  confinement: Confinement,
  spec: BrowserSpec,
  { timeoutMs, stopped }: { timeoutMs: number; stopped: AbortSignal },
): Promise<Launched> {
  using bounds = boundLaunch(timeoutMs, stopped);
  const { signal } = bounds;
  const listening = Promise.withResolvers<string>();
  const onLine = (line: string): void => {
    const endpoint = parseListening(line);
    if (endpoint !== null) listening.resolve(endpoint.path);
  };
  let started: StartedContainer | null = null;
  try {
    started = await startAtFreeAddress(docker, confinement, spec, { onLine, signal });
    void started.ended.then((exitCode) =>
      bounds.fail(`The browser ended before it was ready: exit code ${exitCode}`),
    );
    const ready = await orAborted(
      whenReady(started.container, confinement, spec, listening.promise, signal),
      signal,
    );
    return { containerId: started.container.id, ...ready };
  } catch (error) {
    if (started !== null) await removeContainer(started.container);
    throw new LaunchFailed(messageOf(error), started?.tail() ?? '');
  } finally {
    started?.detach();
  }
}

/** Addresses in use that are tried before the launch fails. */
const ADDRESSES_MAX = 8;

async function startAtFreeAddress(
  docker: Docker,
  confinement: Confinement,
  spec: BrowserSpec,
  options: { onLine: (line: string) => void; signal: AbortSignal },
): Promise<StartedContainer> {
  for (let tried = 1; ; tried += 1) {
    const address = confinement.publish === null ? confinement.nextAddress() : null;
    try {
      const container = browserContainer(confinement, spec, address);
      const input = browserInput(confinement, spec);
      const given = { ...options, ...preparing(spec, options), input };
      return await startContainer(docker, container, given);
    } catch (error) {
      const isTaken = address !== null && /address already in use/i.test(messageOf(error));
      if (!isTaken || tried === ADDRESSES_MAX) throw error;
    }
  }
}

/** Only a browser with extensions or a profile has a step before its start. */
function preparing(
  { extensions, profile }: BrowserSpec,
  { signal }: { signal: AbortSignal },
): { prepare?: (container: Docker.Container) => Promise<void> } {
  if (extensions === undefined && profile === undefined) return {};
  return {
    async prepare(container) {
      if (extensions !== undefined) await putExtensions(container, extensions, signal);
      if (profile !== undefined) await putProfile(container, profile.tar, signal);
    },
  };
}

async function whenReady(
  container: Docker.Container,
  confinement: Confinement,
  { workloadId, headless, egress: egressEndpoint }: BrowserSpec,
  listening: Promise<string>,
  signal: AbortSignal,
): Promise<Pick<Launched, 'browser' | 'egress'>> {
  // The start has set the addresses. Chromium takes longer to listen than this request.
  const { NetworkSettings, Config } = await container.inspect(bounded(signal));
  const endpoint = (port: number) => endpointOf(NetworkSettings, port, confinement);
  const linkKey = confinement.linkKeys(workloadId);
  const vnc = { ...endpoint(VNC_PORT), linkKey };
  const cdp = { ...endpoint(CDP_PORT), linkKey, path: await listening };
  const egress = egressEndpoint === undefined ? null : { ...endpoint(EGRESS_PORT), linkKey };
  await Promise.all([
    egress === null ? null : untilReady(() => linkReady(egress, signal), signal),
    untilReady(() => cdpReady(cdp, signal), signal),
    headless === true ? null : untilReady(() => rfbReady(vnc, signal), signal),
  ]);
  const webdriver = webdriverOf(Config.Labels, endpoint(WEBDRIVER_PORT));
  return { browser: { workloadId, cdp, vnc, ...webdriver }, egress };
}
