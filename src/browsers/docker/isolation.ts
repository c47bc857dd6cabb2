import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { BlockList } from 'node:net';
import { readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import { within } from '#src/kernel/async/timeout.ts';
import { linkKeyText } from '#src/browsers/link/browser-link.ts';
import {
  removeContainer,
  runContainer,
  shortLived,
  startContainer,
  type StartedContainer,
} from './container.ts';
import { bounded, messageOf, statusOf } from './engine.ts';
import { checkLink } from '../link-check.ts';
import { LISTEN, TRY_ALL } from '../probe-scripts.ts';
import { CDP_PORT, ownLabel, VNC_PORT } from './naming.ts';
import { isOnEngineHost, type SessionsNetwork } from './network.ts';
import { NFT_ARGS, runNft, listText, resolversIn, rulesText, withoutCounted } from './rules.ts';
import { confined, endpointOf, publishing, type Confinement } from './spec.ts';

/** What enforcing and checking the isolation needs. */
export type IsolationDependencies = {
  docker: Docker;
  network: SessionsNetwork;
  confinement: Confinement;
  /** The image with nft, needed only where this process may not set rules itself. */
  rulesImage: () => Promise<string>;
};

/** A session could reach a forbidden address, or isolation could not be verified. */
export class NotIsolated extends Error {
  override readonly name = 'NotIsolated';
}

/**
 * Puts the packet rules in force: by this process where it may, else by a short-lived container on
 * the host's network. Idempotent.
 * @returns whether the sessions' connections are bounded: not every kernel can count them
 * @throws Error with the message of nft or of the engine
 */
export async function enforceRules(
  dependencies: IsolationDependencies,
): Promise<{ isBounded: boolean }> {
  const { bridge, isClosed = false } = dependencies.network;
  const rules = isClosed
    ? { bridge, resolvers: [], isClosed }
    : { bridge, resolvers: await resolversOf(dependencies) };
  try {
    await runRulesScript(dependencies, rulesText(rules));
    return { isBounded: true };
  } catch (error) {
    // What nft says of an expression that the kernel does not have.
    if (!messageOf(error).includes('No such file or directory')) throw error;
  }
  await runRulesScript(dependencies, rulesText({ ...rules, isBounded: false }));
  return { isBounded: false };
}

async function resolversOf(dependencies: IsolationDependencies): Promise<readonly string[]> {
  const { dns } = dependencies.confinement;
  return dns.length > 0 ? dns : engineResolvers(dependencies);
}

/** The rules in force, as nft lists them, for a comparison; null if there are none. */
export async function readRules(dependencies: RulesDependencies): Promise<string | null> {
  try {
    const listed = await runRulesScript(dependencies, listText(dependencies.network.bridge));
    return withoutCounted(listed);
  } catch (error) {
    if (messageOf(error).includes('No such file or directory')) return null;
    throw error;
  }
}

type RulesDependencies = Pick<IsolationDependencies, 'docker' | 'network' | 'rulesImage'>;

/** Runs an nft script on the engine's host. @returns nft's output */
export async function runRulesScript(
  dependencies: RulesDependencies,
  script: string,
): Promise<string> {
  const listed = isOnEngineHost(dependencies.network) ? await runNft(script) : null;
  if (listed !== null) return listed;
  const command = `printf %s "$RULES" | nft ${NFT_ARGS.join(' ')}`;
  return runOnHost(dependencies, ['sh', '-c', command], [`RULES=${script}`]);
}

/** Name servers outside of the host that the engine asks for its containers. */
async function engineResolvers(dependencies: IsolationDependencies): Promise<string[]> {
  const text = isOnEngineHost(dependencies.network)
    ? readFileSync('/etc/resolv.conf', 'utf8')
    : await runOnHost(dependencies, ['cat', '/etc/resolv.conf']);
  return resolversIn(text);
}

const HELPER_MS = 20_000;

async function runOnHost(
  { docker, rulesImage }: Omit<RulesDependencies, 'network'>,
  command: string[],
  variables: string[] = [],
): Promise<string> {
  const options: Docker.ContainerCreateOptions = {
    Image: await rulesImage(),
    Labels: ownLabel(),
    Entrypoint: command,
    Env: variables,
    HostConfig: {
      NetworkMode: 'host',
      CapDrop: ['ALL'],
      CapAdd: ['NET_ADMIN'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
    },
  };
  const { exitCode, lines } = await runContainer(docker, options, HELPER_MS);
  const output = lines.join('\n');
  if (exitCode !== 0) throw new Error(`${command[0]} on the engine's host failed: ${output}`);
  return output;
}

const LINK_LOCAL = '169.254.213.213';

/**
 * Addresses for the check, which the rules must refuse before a packet leaves the host: one of each
 * important kind of private network, an alternative where the sessions' own network has the first.
 */
export function forbiddenSamples(subnet: string): string[] {
  const [address = '', bits] = subnet.split('/');
  const own = new BlockList();
  own.addSubnet(address, Number(bits), 'ipv4');
  const pairs = [
    ['10.213.213.213', '10.13.13.13'],
    ['172.30.213.213', '172.20.13.13'],
    ['192.168.213.213', '192.168.13.13'],
  ];
  const outside = pairs.flatMap((pair) =>
    pair.filter((one) => !own.check(one, 'ipv4')).slice(0, 1),
  );
  return [...outside, LINK_LOCAL];
}

const DISCARD_PORT = 9;
/**
 * The errors of Linux for the rules' refusals. A host without the rules answers "Connection
 * refused" to UDP too, and an address without a host does not answer.
 */
const REFUSED = { tcp: 'Connection refused', udp: 'No route to host' } as const;
const PROBE_MS = 30_000;
/** Longer than all time limits together while a neighbour is needed. */
const NEIGHBOUR_LIVES_MS = 300_000;
/** Seconds to wait for a refusal (immediate unless the host is busy) and for silence. */
const REFUSED_WITHIN_S = 10;
const SILENT_FOR_S = 2;

/**
 * Verifies what sessions reach and who reaches them, with a container that stands for a session and
 * runs its link in front of a real VNC server:
 * - from another session, forbidden addresses are refused at once, and the session is not reached;
 * - from a container of Docker's default network, the session is not reached;
 * - from this process, the session answers its key, and neither another key nor plain TCP.
 * @throws NotIsolated naming what was reached
 */
export async function checkIsolation(
  { docker, network, confinement }: Omit<IsolationDependencies, 'rulesImage'>,
  neighbourLivesMs = NEIGHBOUR_LIVES_MS,
): Promise<void> {
  const key = createSecretKey(randomBytes(32));
  const neighbour = await startNeighbour(docker, confinement, key, neighbourLivesMs);
  try {
    const { NetworkSettings } = await neighbour.container.inspect(bounded());
    const address = NetworkSettings.Networks[network.name]?.IPAddress ?? '';
    const links = [CDP_PORT, VNC_PORT].map((port) => `tcp ${address} ${port}`);
    const found = await Promise.all([
      tryFrom(docker, confinement, { ...fromSession(network), ...fromAll(links, UNREACHED) }),
      tryFromDefaultNetwork(docker, confinement, fromAll(links, UNREACHED)),
      ...[CDP_PORT, VNC_PORT].map((port) =>
        checkLink({ ...endpointOf(NetworkSettings, port, confinement), linkKey: key }),
      ),
    ]);
    // A neighbour that has ended would be silent too; if it is removed, the engine answers 404.
    const { State } = await neighbour.container.inspect(bounded());
    if (!State.Running) throw new NotIsolated('the neighbour container of the check ended');
    const wrong = found.filter((one) => one !== null);
    if (wrong.length > 0) throw new NotIsolated(wrong.join('; '));
  } finally {
    await removeContainer(neighbour.container);
  }
}

/** Targets of the probe, as "protocol address port", with the answers that are right. */
type Expected = Readonly<Record<string, readonly string[]>>;

/** Silence: dropped packets. Docker's own rules between networks drop them too. */
const UNREACHED = ['silence', REFUSED.tcp];

function fromAll(targets: readonly string[], answers: readonly string[]): Expected {
  return Object.fromEntries(targets.map((target) => [target, answers]));
}

/** What every session is refused, and how. */
function fromSession(network: SessionsNetwork): Expected {
  const tcp = [network.gateway, ...forbiddenSamples(network.subnet)];
  return {
    ...fromAll(
      tcp.map((host) => `tcp ${host} ${DISCARD_PORT}`),
      [REFUSED.tcp],
    ),
    ...fromAll(
      [network.gateway, LINK_LOCAL].map((host) => `udp ${host} ${DISCARD_PORT}`),
      [REFUSED.udp],
    ),
    ...(network.isClosed === true ? fromClosed() : {}),
  };
}

/** In a range for documentation, which the rules of a network with a way out let pass. */
const PUBLIC_SAMPLE = '198.51.100.213';
/** A host without a default route refuses before its rules do. */
const NO_ROUTE = ['Network is unreachable', 'No route to host'];

/** What a session without a way out is refused beside: the Internet, names included. */
function fromClosed(): Expected {
  return {
    ...fromAll(
      [`tcp ${PUBLIC_SAMPLE} ${DISCARD_PORT}`, `tcp ${PUBLIC_SAMPLE} 53`],
      [REFUSED.tcp, ...NO_ROUTE],
    ),
    ...fromAll([`udp ${PUBLIC_SAMPLE} 53`], [REFUSED.udp, ...NO_ROUTE]),
  };
}

/** Tries targets from a new container. @returns what was wrong, or null */
async function tryFrom(
  docker: Docker,
  confinement: Confinement,
  expected: Expected,
  where = 'inside a session',
): Promise<string | null> {
  const targets = Object.entries(expected).map(
    ([target, answers]) => `${target} ${answers === UNREACHED ? SILENT_FOR_S : REFUSED_WITHIN_S}`,
  );
  const { lines } = await runContainer(docker, probe(confinement, TRY_ALL, targets), PROBE_MS);
  const answers = new Map(lines.map((line) => line.split(': ', 2) as [string, string]));
  const wrong = Object.entries(expected).filter(
    ([target, allowed]) => !allowed.includes(answers.get(target) ?? ''),
  );
  if (wrong.length === 0) return null;
  const found = wrong.map(([target]) => `${target}: ${answers.get(target) ?? 'no answer'}`);
  return `from ${where}, ${found.join('; ')}`;
}

const DEFAULT_NETWORK = 'bridge';

/** An engine may have no default network; then no container can be on it. */
async function tryFromDefaultNetwork(
  docker: Docker,
  confinement: Confinement,
  expected: Expected,
): Promise<string | null> {
  const found = await docker.getNetwork(DEFAULT_NETWORK).inspect().catch(statusOf);
  if (found === 404) return null;
  const elsewhere = { ...confinement, network: DEFAULT_NETWORK };
  return tryFrom(docker, elsewhere, expected, 'a container of Docker’s default network');
}

/** Starts a container that stands for another session; resolves once it listens. */
async function startNeighbour(
  docker: Docker,
  confinement: Confinement,
  key: KeyObject,
  livesMs: number,
): Promise<StartedContainer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const listening = probe(confinement, LISTEN, []);
  const options = shortLived(
    {
      ...listening,
      Env: [`LINK_KEY=${linkKeyText(key)}`],
      HostConfig: { ...listening.HostConfig, ...publishing(confinement) },
    },
    livesMs,
  );
  const onLine = (line: string): void => {
    if (line === 'listening') resolve();
  };
  const started = await startContainer(docker, options, { onLine });
  void started.ended.then(() =>
    reject(new NotIsolated(`the neighbour container of the check ended: ${started.tail()}`)),
  );
  try {
    await within(PROBE_MS, promise, () => {
      throw new NotIsolated('the neighbour container of the check did not start');
    });
    return started;
  } catch (error) {
    await removeContainer(started.container);
    throw error;
  } finally {
    started.detach();
  }
}

function probe(
  confinement: Confinement,
  script: string,
  args: string[],
): Docker.ContainerCreateOptions {
  return {
    Image: confinement.image,
    Labels: ownLabel(),
    User: '1000:1000',
    Entrypoint: ['bash', '-c', script, 'probe'],
    Cmd: args,
    // A lower limit of the browsers' could be too low for these scripts.
    HostConfig: confined({ ...confinement, limits: { ...confinement.limits, pids: 256 } }),
  };
}
