import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import type { DockerConfig } from '#src/kernel/config/docker.ts';
import { runContainer } from '#src/browsers/docker/container.ts';
import { answered, connectEngine, messageOf } from '#src/browsers/docker/engine.ts';
import { findBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { readSeccomp } from '#src/browsers/docker/image.ts';
import { checkIsolation } from '#src/browsers/docker/isolation.ts';
import { ownLabel } from '#src/browsers/docker/naming.ts';
import { findNetwork, isOnEngineHost } from '#src/browsers/docker/network.ts';
import { confined, type Confinement } from '#src/browsers/docker/spec.ts';
import type { EngineFacts } from './facts.ts';

const PROBE_MS = 30_000;

/**
 * Reads the state of the engine, and probes sandbox and network in containers that are confined
 * like a browser. Creates no image, network or packet rules. @throws DockerUnavailable
 */
export async function gatherEngineFacts(options: DockerConfig): Promise<EngineFacts> {
  const { docker, cpus } = await connectEngine(options.host);
  const info = (await answered(docker.info())) as EngineInfo;
  const image = await findBrowserImage(docker, options.image);
  const network = await findNetwork(docker, options.network);
  const isHere = network === null || isOnEngineHost(network);
  const confinement: Confinement = {
    image: image?.name ?? '',
    serverId: 'doctor',
    network: network?.name ?? 'none',
    publish: options.publish ?? (isHere ? null : '127.0.0.1'),
    dns: options.dns,
    // Launches no browser.
    linkKeys: createLinkKeys(randomBytes(32)),
    nextAddress: () => null,
    seccomp: readSeccomp(),
    limits: { ...options.limits, cpus: Math.min(options.limits.cpus, cpus) },
  };
  const canTry = image !== null && network !== null;
  return {
    version: info.ServerVersion,
    hasSeccomp: info.SecurityOptions.some((option) => option.startsWith('name=seccomp')),
    filtersBridges: info.BridgeNfIptables,
    image: image && {
      version: image.version,
      ageMs: Math.max(0, Date.now() - image.builtAt),
      isGiven: options.image !== null,
    },
    hasNetwork: network !== null,
    sandboxRefusal: image === null ? null : await trySandbox(docker, confinement),
    reachable: canTry ? await tryNetwork({ docker, network, confinement }) : null,
  };
}

type EngineInfo = {
  ServerVersion: string;
  SecurityOptions: string[];
  BridgeNfIptables: boolean;
};

/** Creates a user namespace, as Chromium does at its start. Empty if that works, else why not. */
async function trySandbox(docker: Docker, confinement: Confinement): Promise<string> {
  const options: Docker.ContainerCreateOptions = {
    Image: confinement.image,
    Labels: ownLabel(),
    User: '1000:1000',
    Entrypoint: ['unshare', '--user', '--pid', '--net', '--fork', 'true'],
    HostConfig: { ...confined(confinement), NetworkMode: 'none' },
  };
  const { exitCode, lines } = await runContainer(docker, options, PROBE_MS);
  return exitCode === 0 ? '' : lines.join(' ').trim() || `unshare ended with exit code ${exitCode}`;
}

type NetworkParts = Omit<Parameters<typeof checkIsolation>[0], 'rulesImage'>;

async function tryNetwork(parts: NetworkParts): Promise<string> {
  try {
    const whole = { ...parts, rulesImage: setsNoRules };
    await checkIsolation(whole);
    return '';
  } catch (error) {
    return messageOf(error);
  }
}

function setsNoRules(): Promise<never> {
  return Promise.reject(new Error('the doctor sets no rules'));
}
