import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { answered, bounded, DockerUnavailable, statusOf } from './engine.ts';
import { ownLabel } from './naming.ts';

/** The network that all sessions of an engine are on. */
export type SessionsNetwork = {
  name: string;
  /** Name of its interface on the engine's host; no other engine's network has the same. */
  bridge: string;
  /** The host's own address on it. */
  gateway: string;
  /** Its addresses, as 172.18.0.0/16. */
  subnet: string;
};

const BRIDGE = 'com.docker.network.bridge.name';
/** Containers of the network do not reach each other. */
const ICC = 'com.docker.network.bridge.enable_icc';

/**
 * The network, made where it is missing. Docker's own rules keep its containers apart; the rest is
 * for docker-isolation.ts.
 * @throws DockerUnavailable when a network of that name is there that is none of ours
 */
export async function ensureNetwork(docker: Docker, name: string): Promise<SessionsNetwork> {
  return read(name, (await inspect(docker, name)) ?? (await create(docker, name)));
}

/** The network where it is there already; null where it is not. @throws DockerUnavailable */
export async function findNetwork(docker: Docker, name: string): Promise<SessionsNetwork | null> {
  const network = await inspect(docker, name);
  return network === null ? null : read(name, network);
}

function read(name: string, { Options, IPAM }: Docker.NetworkInspectInfo): SessionsNetwork {
  const gateway = IPAM?.Config?.[0]?.['Gateway'];
  const subnet = IPAM?.Config?.[0]?.['Subnet'];
  const bridge = Options?.[BRIDGE];
  const isWhole = bridge !== undefined && gateway !== undefined && subnet !== undefined;
  if (!isWhole || Options?.[ICC] !== 'false')
    throw new DockerUnavailable(
      `DOCKER_NETWORK: the engine has a network ${name} in which containers reach each other. ` +
        'Remove it, or name another: one that is missing is made as it has to be.',
    );
  return { name, bridge, gateway, subnet };
}

/** Whether this process is on the engine's own network, where the bridge is an interface. */
export function isOnEngineHost({ bridge }: SessionsNetwork): boolean {
  return existsSync(`/sys/class/net/${bridge}`);
}

async function inspect(docker: Docker, name: string): Promise<Docker.NetworkInspectInfo | null> {
  try {
    return await answered(docker.getNetwork(name).inspect());
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

/** A rival that made its bridge a moment ago has the network listed well within this. */
const RIVAL_MS = 5_000;

/**
 * Of two services that make it at once, one does: the engine may take a second network of the same
 * name, but no second bridge of the same name.
 */
async function create(docker: Docker, name: string): Promise<Docker.NetworkInspectInfo> {
  try {
    await docker.createNetwork({
      Name: name,
      Driver: 'bridge',
      CheckDuplicate: true,
      EnableIPv6: false,
      Labels: ownLabel(),
      Options: { [BRIDGE]: await bridgeFor(docker, name), [ICC]: 'false' },
      ...bounded(),
    });
  } catch (error) {
    // The network is there already, or its bridge is.
    if (statusOf(error) !== 409 && statusOf(error) !== 403) throw error;
    return madeByRival(docker, name, error);
  }
  const made = await inspect(docker, name);
  if (made === null) throw new Error(`the network ${name} is gone again`);
  return made;
}

async function madeByRival(docker: Docker, name: string, refusal: unknown) {
  const until = performance.now() + RIVAL_MS;
  while (performance.now() < until) {
    const made = await inspect(docker, name);
    if (made !== null) return made;
    await pause(100);
  }
  throw refusal;
}

/**
 * The same for all who make that network on that engine, on no other; 15 characters at most. An
 * engine before 23 has its id from a file of its machine, as every engine there has, so the id of
 * the network that each engine makes for itself once goes in beside.
 */
async function bridgeFor(docker: Docker, name: string): Promise<string> {
  const { ID } = (await answered(docker.info())) as { ID: string };
  const none = await inspect(docker, 'none');
  const whose = `${ID} ${none?.Id ?? ''} ${name}`;
  return `bss-${createHash('sha256').update(whose).digest('hex').slice(0, 8)}`;
}
