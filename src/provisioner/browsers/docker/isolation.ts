import { BlockList } from 'node:net';
import { readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import { removeContainer, runContainer, shortLived, startContainer } from './container.ts';
import type { StartedContainer } from './container.ts';
import { bounded, messageOf } from './engine.ts';
import { ownLabel } from './naming.ts';
import { isOnEngineHost } from './network.ts';
import type { SessionsNetwork } from './network.ts';
import { NFT_ARGS, runNft } from '../../docker-nft.ts';
import { listText, resolversIn, rulesText } from './rules.ts';
import { confined } from './spec.ts';
import type { Confinement } from './spec.ts';

/** What the sessions' network is made of. */
export type IsolationParts = {
  docker: Docker;
  network: SessionsNetwork;
  confinement: Confinement;
  /** The image with nft in it, which is needed only where this process may not set rules itself. */
  rulesImage: () => Promise<string>;
};

/** A session could reach what it should not, or it is not known that it cannot. */
export class NotIsolated extends Error {
  override readonly name = 'NotIsolated';
}

/**
 * Puts the packet rules in force, as often as it is called: by this process where it may, else by a
 * container on the host's network that ends with it.
 * @throws Error with what nft or the engine said
 */
export async function enforceRules(parts: IsolationParts): Promise<void> {
  const { confinement, network } = parts;
  const resolvers = confinement.dns.length > 0 ? confinement.dns : await engineResolvers(parts);
  await setRules(parts, rulesText({ bridge: network.bridge, resolvers }));
}

/** The rules that are in force, in nft's own words; null where there are none. */
export async function listRules(parts: RulesParts): Promise<string | null> {
  try {
    return await setRules(parts, listText(parts.network.bridge));
  } catch (error) {
    if (messageOf(error).includes('No such file or directory')) return null;
    throw error;
  }
}

type RulesParts = Pick<IsolationParts, 'docker' | 'network' | 'rulesImage'>;

/** Runs a script of nft's on the engine's host; what it lists. */
export async function setRules(parts: RulesParts, script: string): Promise<string> {
  const listed = isOnEngineHost(parts.network) ? await runNft(script) : null;
  if (listed !== null) return listed;
  const command = `printf %s "$RULES" | nft ${NFT_ARGS.join(' ')}`;
  return onHost(parts, ['sh', '-c', command], [`RULES=${script}`]);
}

/** Name servers outside of the host that the engine asks on behalf of its containers. */
async function engineResolvers(parts: IsolationParts): Promise<string[]> {
  const text = isOnEngineHost(parts.network)
    ? readFileSync('/etc/resolv.conf', 'utf8')
    : await onHost(parts, ['cat', '/etc/resolv.conf']);
  return resolversIn(text);
}

const HELPER_MS = 20_000;

async function onHost(
  { docker, rulesImage }: Omit<RulesParts, 'network'>,
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
  const said = lines.join('\n');
  if (exitCode !== 0) throw new Error(`${command[0]} on the engine's host failed: ${said}`);
  return said;
}

const LINK_LOCAL = '169.254.213.213';

/**
 * Addresses that nobody is asked at: the rules refuse them before a packet leaves. One for each
 * kind of network that matters most; a second where the sessions' own network has the first.
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
const NEIGHBOUR_PORT = 9223;
/**
 * What Linux makes of the rules' refusals. A host without them says "Connection refused" to UDP
 * too, and one that is not there says nothing to either.
 */
const REFUSED = { tcp: 'Connection refused', udp: 'No route to host' } as const;
const PROBE_MS = 30_000;
/** Longer than all that is waited for while a neighbour is needed. */
const NEIGHBOUR_LIVES_MS = 300_000;
/** A refusal comes at once, on a busy machine by and by; silence has to be waited for. */
const REFUSED_WITHIN_S = 10;
const SILENT_FOR_S = 2;

/**
 * Proves from inside, in containers like the sessions' own, that the rules hold: what is forbidden
 * is refused by them at once, and a session that listens is not reached by another.
 * @throws NotIsolated naming what was reached
 */
export async function checkIsolation(
  { docker, network, confinement }: Omit<IsolationParts, 'rulesImage'>,
  neighbourLivesMs = NEIGHBOUR_LIVES_MS,
): Promise<void> {
  const neighbour = await startNeighbour(docker, confinement, neighbourLivesMs);
  try {
    const { NetworkSettings } = await neighbour.container.inspect(bounded());
    const address = NetworkSettings.Networks[network.name]?.IPAddress ?? '';
    const silent = `tcp ${address} ${NEIGHBOUR_PORT}`;
    const expected = new Map<string, readonly string[]>([[silent, ['silence', REFUSED.tcp]]]);
    for (const host of [network.gateway, ...forbiddenSamples(network.subnet)])
      expected.set(`tcp ${host} ${DISCARD_PORT}`, [REFUSED.tcp]);
    for (const host of [network.gateway, LINK_LOCAL])
      expected.set(`udp ${host} ${DISCARD_PORT}`, [REFUSED.udp]);
    const patience = (target: string) => (target === silent ? SILENT_FOR_S : REFUSED_WITHIN_S);
    const asked = [...expected.keys()].map((target) => `${target} ${patience(target)}`);
    const options = probe(confinement, PROBE, asked);
    const { lines } = await runContainer(docker, options, PROBE_MS);
    // One that is gone is silent too; the engine refuses to say anything of it then.
    const { State } = await neighbour.container.inspect(bounded());
    if (!State.Running) throw new NotIsolated('the neighbour of the check ended');
    const answers = new Map(lines.map((line) => line.split(': ', 2) as [string, string]));
    const wrong = [...expected].filter(
      ([target, allowed]) => !allowed.includes(answers.get(target) ?? ''),
    );
    if (wrong.length === 0) return;
    const found = wrong.map(([target]) => `${target}: ${answers.get(target) ?? 'no answer'}`);
    throw new NotIsolated(`from inside a session, ${found.join('; ')}`);
  } finally {
    await removeContainer(neighbour.container);
  }
}

/**
 * One line for each target, "protocol address port: what came of it", within so many seconds; all
 * at once. UDP hears of a refusal when it sends again, and Linux makes one of those a second at
 * most for each who asks.
 */
const PROBE = `
try_tcp() { exec 3<>"/dev/tcp/$1/$2"; }
try_udp() {
  exec 3<>"/dev/udp/$1/$2"
  while echo >&3; do sleep 0.1; done
  return 1
}
export -f try_tcp try_udp
for target in "$@"; do
  (
    read -r protocol host port within <<<"$target"
    said=$(timeout $within bash -c "try_$protocol $host $port" 2>&1)
    case $? in
      0) said=reached ;;
      124) said=silence ;;
      *) said=\${said%%$'\\n'*} said=\${said##*: } ;;
    esac
    echo "$protocol $host $port: $said"
  ) &
done
wait
`;

const LISTEN = `
socat TCP-LISTEN:${NEIGHBOUR_PORT},fork,reuseaddr SYSTEM:true &
until (exec 3<>/dev/tcp/127.0.0.1/${NEIGHBOUR_PORT}) 2>/dev/null; do
  kill -0 $! || exit 1
  sleep 0.02
done
echo listening
wait
`;

/** A container that stands for another session; it listens when this resolves. */
async function startNeighbour(
  docker: Docker,
  confinement: Confinement,
  livesMs: number,
): Promise<StartedContainer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = shortLived(probe(confinement, LISTEN, []), livesMs);
  const onLine = (line: string): void => {
    if (line === 'listening') resolve();
  };
  const started = await startContainer(docker, options, { onLine });
  const late = setTimeout(() => reject(new NotIsolated('the check did not begin')), PROBE_MS);
  void started.ended.then(() => reject(new NotIsolated(`the check ended: ${started.tail()}`)));
  try {
    await promise;
    return started;
  } catch (error) {
    await removeContainer(started.container);
    throw error;
  } finally {
    clearTimeout(late);
    started.letGo();
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
    // Too few for these scripts, where browsers have no more, would say nothing of the rules.
    HostConfig: confined({ ...confinement, limits: { ...confinement.limits, pids: 256 } }),
  };
}
