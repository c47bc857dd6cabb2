import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type Docker from 'dockerode';
import { sleep } from '#src/kernel/async/sleep.ts';
import { answered, bounded, DockerUnavailable, statusOf } from './engine.ts';
import { ADDRESSES, CHOSEN, ownLabel } from './naming.ts';

/** The network of all sessions of an engine. */
export type SessionsNetwork = {
  name: string;
  /** Name of its interface on the engine's host, unique among engines. */
  bridge: string;
  /** The host's own address on this network. */
  gateway: string;
  /** Its addresses, as 172.18.0.0/16. */
  subnet: string;
  /** Whether the service may choose its containers' addresses: it has chosen the subnet. */
  isOurs: boolean;
  /** True: nothing leads out of it, and the rules refuse whatever a container sends by itself. */
  isClosed?: boolean;
};

const BRIDGE = 'com.docker.network.bridge.name';
/** `false`: containers of the network cannot reach each other. */
const ICC = 'com.docker.network.bridge.enable_icc';
/** `false`: what a container sends keeps its private address, and nothing outside can answer. */
const MASQUERADE = 'com.docker.network.bridge.enable_ip_masquerade';

/**
 * The network, created if it is missing. Docker's own rules keep its containers apart; isolation.ts
 * does the rest.
 * @throws DockerUnavailable where a network of that name does not have these settings
 */
export async function ensureNetwork(
  docker: Docker,
  name: string,
  { isClosed = false }: Pick<SessionsNetwork, 'isClosed'> = {},
): Promise<SessionsNetwork> {
  return read(name, (await inspect(docker, name)) ?? (await create(docker, name, isClosed)));
}

/** The network without creating it; null if it is missing. @throws DockerUnavailable */
export async function findNetwork(docker: Docker, name: string): Promise<SessionsNetwork | null> {
  const network = await inspect(docker, name);
  return network === null ? null : read(name, network);
}

function read(name: string, { Options, IPAM, Labels }: Docker.NetworkInspectInfo): SessionsNetwork {
  const gateway = IPAM?.Config?.[0]?.['Gateway'];
  const subnet = IPAM?.Config?.[0]?.['Subnet'];
  const bridge = Options?.[BRIDGE];
  const isWhole = bridge !== undefined && gateway !== undefined && subnet !== undefined;
  if (!isWhole || Options?.[ICC] !== 'false')
    throw new DockerUnavailable(
      `DOCKER_NETWORK: the engine has a network ${name} in which containers reach each other. ` +
        'Remove it or name another one: a missing network is created with the right settings.',
    );
  const isClosed = Options?.[MASQUERADE] === 'false';
  const isOurs = Labels?.[ADDRESSES] === CHOSEN;
  return { name, bridge, gateway, subnet, isOurs, ...(isClosed && { isClosed }) };
}

/** Whether this process shares the engine's network namespace, where the bridge is an interface. */
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

/** A concurrent service that has created its bridge has the network listed well within this. */
const RIVAL_MS = 5_000;

/**
 * Of services that create it at the same time only one succeeds: the engine may accept a second
 * network of the same name, but no second bridge of the same name.
 */
async function create(
  docker: Docker,
  name: string,
  isClosed: boolean,
): Promise<Docker.NetworkInspectInfo> {
  const place = await freePlace(docker);
  try {
    await docker.createNetwork({
      Name: name,
      Driver: 'bridge',
      CheckDuplicate: true,
      EnableIPv6: false,
      // On a subnet that the engine has chosen itself, it refuses a chosen address.
      IPAM: { Driver: 'default', Config: [place] },
      Labels: { ...ownLabel(), [ADDRESSES]: CHOSEN },
      Options: {
        [BRIDGE]: await bridgeFor(docker, name),
        [ICC]: 'false',
        ...(isClosed && { [MASQUERADE]: 'false' }),
      },
      ...bounded(),
    });
  } catch (error) {
    // The network or its bridge exists already.
    if (statusOf(error) !== 409 && statusOf(error) !== 403) throw error;
    return createdByRival(docker, name, error);
  }
  const made = await inspect(docker, name);
  if (made === null) throw new Error(`the network ${name} was removed just after its creation`);
  return made;
}

/** A subnet that the engine considers free: it gives it to a network that is removed at once. */
async function freePlace(docker: Docker): Promise<{ Subnet: string; Gateway: string }> {
  const name = `bss-subnet-${randomUUID()}`;
  const network = await docker.createNetwork({ Name: name, Labels: ownLabel(), ...bounded() });
  try {
    const { IPAM } = await answered<Docker.NetworkInspectInfo>(network.inspect());
    const { Subnet, Gateway } = IPAM?.Config?.[0] ?? {};
    if (Subnet === undefined || Gateway === undefined)
      throw new Error('the engine has given a network no subnet');
    return { Subnet, Gateway };
  } finally {
    await answered(network.remove());
  }
}

async function createdByRival(docker: Docker, name: string, refusal: unknown) {
  const until = performance.now() + RIVAL_MS;
  while (performance.now() < until) {
    const made = await inspect(docker, name);
    if (made !== null) return made;
    await sleep(100);
  }
  throw refusal;
}

/**
 * The bridge's name: the same for all services on that engine, different on another; 15 characters
 * at most. Engines before version 23 on one machine share their id, so the id of the engine's
 * built-in network `none` is hashed too.
 */
async function bridgeFor(docker: Docker, name: string): Promise<string> {
  const { ID } = (await answered(docker.info())) as { ID: string };
  const none = await inspect(docker, 'none');
  const identity = `${ID} ${none?.Id ?? ''} ${name}`;
  return `bss-${createHash('sha256').update(identity).digest('hex').slice(0, 8)}`;
}
