import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { siteProgram } from './outside-site.ts';

/**
 * Hosts that only this machine reaches, in a network namespace behind a veth pair: they stand for
 * the surroundings of a server.
 */
export type NetworkHosts = AsyncDisposable & {
  /** The network namespace, for `ip netns exec`: its routes lead through this machine. */
  namespace: string;
  /** Like the cloud's metadata service. */
  linkLocal: string;
  private10: string;
  private192: string;
  /** From a range for documentation, which no rule blocks: a reachable address. */
  public: string;
  /** The machine's own address beside the public one. */
  machine: string;
  port: number;
  /**
   * What was received so far at an address, or of UDP with this text or protocol (`stun`, `quic`),
   * including all that was sent before the call.
   */
  reached(address: string): Promise<string[]>;
};

const PORT = 8_080;

/** Numbers in this process, so that no two have the same name: the kernel is slow to remove one. */
let opened = 0;

/** Needs root. */
export async function openHosts(): Promise<NetworkHosts> {
  const mark = process.pid % 200;
  opened += 1;
  const name = `bsst${process.pid}${opened}`;
  const [outside, inside] = [`${name}o`, `${name}i`];
  // The third number keeps runs apart; .1 is the machine's, .2 the host's.
  const nets = [`169.254.${mark}`, `10.97.${mark}`, unusedNet(mark), `203.0.113`];
  const last = nets.map((_, index) => (index === 3 ? (mark % 60) * 4 : 200));
  const machineOf = (index: number) => `${nets[index]}.${(last[index] ?? 0) + 1}`;
  const hostOf = (index: number) => `${nets[index]}.${(last[index] ?? 0) + 2}`;

  ip('netns', 'add', name);
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name);
  for (const index of nets.keys()) {
    ip('addr', 'add', `${machineOf(index)}/30`, 'dev', outside);
    ip('-n', name, 'addr', 'add', `${hostOf(index)}/30`, 'dev', inside);
  }
  ip('link', 'set', outside, 'up');
  ip('-n', name, 'link', 'set', inside, 'up');
  ip('-n', name, 'route', 'add', 'default', 'via', machineOf(3));

  const args = ['netns', 'exec', name, process.execPath, '-e', siteProgram(PORT)];
  const listener = spawn('ip', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const said = createInterface({ input: listener.stdout });
  said.on('line', (line) => lines.push(line));
  await once(said, 'line');
  lines.length = 0;
  return {
    namespace: name,
    linkLocal: hostOf(0),
    private10: hostOf(1),
    private192: hostOf(2),
    public: hostOf(3),
    machine: machineOf(3),
    port: PORT,
    reached: async (address) => {
      const mark = `udp ${randomUUID()}`;
      execFileSync('bash', ['-c', `echo ${mark.slice(4)} >/dev/udp/${hostOf(3)}/${PORT}`]);
      while (!lines.includes(mark)) await once(said, 'line');
      return lines.filter((line) => line.endsWith(` ${address}`));
    },
    [Symbol.asyncDispose]: async () => {
      listener.kill('SIGKILL');
      await once(listener, 'exit');
      // With the namespace the pair would go later: the next hosts have the same addresses.
      ip('link', 'del', outside);
      ip('netns', 'del', name);
    },
  };
}

/**
 * A network in 192.168.0.0/16 to which no route of this machine leads. Engines take their networks
 * from there too; they leave out what has a route.
 */
function unusedNet(mark: number): string {
  for (let tried = 0; tried < 250; tried += 1) {
    const net = `192.168.${(mark + tried) % 250}`;
    const args = ['-4', 'route', 'show', 'to', 'match', `${net}.200/30`];
    const routes = execFileSync('ip', args, { encoding: 'utf8' }).split('\n');
    if (routes.every((route) => route === '' || route.startsWith('default '))) return net;
  }
  throw new Error('192.168.0.0/16 has a route to each of its networks');
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
