import type { BrowserAddress } from '#src/browsers/link/browser-link.ts';
import { LaunchFailed } from '../browsers.ts';
import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import { cdpReady } from '../chromium/ready.ts';
import { readVersion } from '../chromium/version.ts';
import type { Place } from '../place-engine.ts';
import { rfbReady } from '../rfb.ts';
import { boundLaunch, linkReady, orAborted, untilReady } from '../until-ready.ts';
import { messageOf, type Cluster } from './cluster.ts';
import { CDP_PORT, EGRESS_PORT, nameOf, VNC_PORT, webdriverAt } from './naming.ts';
import { browserPod, browserSecret, isPrepared, type PodOptions } from './pod.ts';
import type { BrowserPod } from './pods.ts';
import { prepare } from './prepare.ts';
import { lastOutput, removePod, removeSecret } from './remove.ts';

export type Launched = Place & { pod: string; uid: string };

/** Tells of each change of a workload's Pod until the signal aborts, the present one first. */
export type FollowPod = (
  workloadId: string,
  listener: (pod: BrowserPod) => void,
  signal: AbortSignal,
) => void;

/** A connection to an address whose network policy is not in force yet gets no answer at all. */
const CONNECTED_WITHIN_MS = 2_000;

/** A container that fails to start so long will not, whatever its node tries. */
const FAILING_MS = 20_000;

/**
 * Starts a browser in a new Pod and waits until it is ready.
 * @throws LaunchFailed also when `stopped` is aborted; the Pod is removed then, with its Secret.
 * Where the API server fails, `unremoved` gets the name of both.
 */
export async function launchPod(
  cluster: Cluster,
  options: PodOptions,
  spec: BrowserSpec,
  given: {
    follow: FollowPod;
    timeoutMs: number;
    stopped: AbortSignal;
    unremoved: (name: string) => void;
  },
): Promise<Launched> {
  const { follow, timeoutMs, stopped, unremoved } = given;
  const { workloadId } = spec;
  const pod = nameOf(workloadId);
  let waitsFor: string | null = null;
  // Their end also ends the following of the Pod.
  using bounds = boundLaunch(timeoutMs, stopped, () => waitsFor);
  const { signal } = bounds;
  const giveUp = () => bounds.fail(`The Pod cannot start: ${waitsFor}`);
  let failing: NodeJS.Timeout | undefined;
  const running = Promise.withResolvers<BrowserPod & { address: string }>();
  const keeperRunning = Promise.withResolvers<void>();
  follow(
    workloadId,
    (seen) => {
      const { phase, reason, address, isHopeless, isFailing, exitCode, keeper } = seen;
      waitsFor = reason;
      if (isFailing) failing ??= setTimeout(giveUp, FAILING_MS);
      else {
        clearTimeout(failing);
        failing = undefined;
      }
      if (keeper === 'running') keeperRunning.resolve();
      if (phase === 'running' && address !== null) running.resolve({ ...seen, address });
      if (phase === 'ended')
        bounds.fail(`The browser ended before it was ready: ${reason ?? `exit code ${exitCode}`}`);
      if (isHopeless) giveUp();
    },
    signal,
  );
  try {
    const uid = await createPod(cluster, options, spec, signal);
    const preparing = isPrepared(spec)
      ? keeperRunning.promise.then(() => prepare(cluster, pod, spec, signal))
      : null;
    const starting = running.promise.then(({ address }) =>
      // Its programs have read the Secret.
      Promise.all([whenReady(address, options, spec, signal), removeSecret(cluster, pod)]),
    );
    const [[ready]] = await orAborted(Promise.all([starting, preparing]), signal);
    return { pod, uid, ...ready };
  } catch (error) {
    const cause = signal.aborted ? (signal.reason as unknown) : error;
    const output = await lastOutput(cluster, pod).catch(() => '');
    await removePod(cluster, pod).catch(() => unremoved(pod));
    throw new LaunchFailed(messageOf(cause), output);
  } finally {
    clearTimeout(failing);
  }
}

/** Creates a browser's Pod, then the Secret that belongs to it. @returns the Pod's uid */
async function createPod(
  { api, namespace, bounded }: Cluster,
  options: PodOptions,
  spec: BrowserSpec,
  signal: AbortSignal,
): Promise<string> {
  const body = browserPod(options, spec);
  const { metadata } = await api.createNamespacedPod({ namespace, body }, bounded(signal));
  const uid = metadata?.uid ?? '';
  const secret = browserSecret(options, spec, uid);
  await api.createNamespacedSecret({ namespace, body: secret }, bounded(signal));
  return uid;
}

async function whenReady(
  host: string,
  { linkKeys }: PodOptions,
  { workloadId, headless, egress: endpoint }: BrowserSpec,
  signal: AbortSignal,
): Promise<Pick<Launched, 'browser' | 'egress'>> {
  const linkKey = linkKeys(workloadId);
  const vnc = { host, port: VNC_PORT, linkKey };
  const egress = endpoint === undefined ? null : { host, port: EGRESS_PORT, linkKey };
  const [cdp] = await Promise.all([
    cdpOf({ host, port: CDP_PORT, linkKey }, signal),
    egress === null ? null : untilReady(() => linkReady(egress, signal), signal),
    headless === true ? null : untilReady(() => rfbReady(vnc, signal), signal),
  ]);
  return { browser: { workloadId, cdp, vnc, webdriver: webdriverAt(host) }, egress };
}

/** The address of CDP with its path, once it answers a command. */
async function cdpOf(address: BrowserAddress, signal: AbortSignal): Promise<RunningBrowser['cdp']> {
  const { webSocketDebuggerUrl } = await untilReady(
    () => readVersion(address, AbortSignal.any([signal, AbortSignal.timeout(CONNECTED_WITHIN_MS)])),
    signal,
  );
  const cdp = { ...address, path: new URL(webSocketDebuggerUrl).pathname };
  await untilReady(() => cdpReady(cdp, signal), signal);
  return cdp;
}
