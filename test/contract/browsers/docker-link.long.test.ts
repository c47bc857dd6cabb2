import { randomBytes } from 'node:crypto';
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLinkKeys, linkKeyText } from '#src/browsers/link/browser-link.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import {
  browserImage,
  docker,
  dockerHost,
  hasDocker,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';
import { openHosts, type NetworkHosts } from '#test/support/servers/network-hosts.ts';
import {
  containersOf,
  MASTER_KEY,
  openDockerBrowsers,
} from '#test/support/browsers/docker-browsers.fixture.ts';

const SPEC = { vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };
const keys = createLinkKeys(Buffer.from(MASTER_KEY));
const run = promisify(execFile);

/**
 * Arguments: targets as host:port, then keys. Tries each target in plain and with each key, all at
 * once; prints whatever the other side answers. CDP answers a request, VNC speaks first.
 */
const ATTACK = `
request() { printf 'GET /json/version HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; sleep 2; }
plain() {
  timeout 4 bash -c "$(declare -f request)"'
    exec 3<>"/dev/tcp/\${0%:*}/\${0#*:}" || exit
    request >&3 &
    head -c 200 <&3' "$1"
}
encrypted() {
  request | timeout 3 openssl s_client -connect "$1" -tls1_3 -psk "$2" -psk_identity gateway \\
    -ciphersuites TLS_AES_128_GCM_SHA256 -quiet 2>&1 | head -c 2000
}
for target in $1; do
  plain "$target" 2>&1 &
  for key in $2; do encrypted "$target" "$key" & done
done
wait
echo done
`;

describe.runIf(hasDocker())(
  'CDP and VNC of a session, published on an address of the machine',
  () => {
    let opened: Awaited<ReturnType<typeof openDockerBrowsers>>;
    let hosts: NetworkHosts;
    let target: RunningBrowser;
    let other: RunningBrowser;
    let addresses: string;
    let image: string;
    beforeAll(async () => {
      hosts = await openHosts();
      image = await browserImage();
      opened = await openDockerBrowsers({ publish: hosts.machine });
      [target, other] = await Promise.all([
        opened.browsers.launch({ ...SPEC, workloadId: `wl_target_${process.pid}` }),
        opened.browsers.launch({ ...SPEC, workloadId: `wl_other_${process.pid}` }),
      ]);
      const format = `{{(index .NetworkSettings.Networks "${testNetwork()}").IPAddress}}`;
      const own = docker('inspect', '--format', format, containerOf(target));
      addresses = [
        ...[target.cdp, target.vnc].map(({ host, port }) => `${host}:${port}`),
        ...[`${own}:9223`, `${own}:5900`],
      ].join(' ');
    });
    afterAll(async () => {
      await opened[Symbol.asyncDispose]();
      await hosts[Symbol.asyncDispose]();
    });

    function containerOf({ workloadId }: RunningBrowser): string {
      return containersOf(opened.options.serverId, workloadId)[0] ?? '';
    }

    /** The command that runs a bash script in a place. */
    const places = {
      'another session': () => ['docker', '-H', dockerHost, 'exec', containerOf(other), 'bash'],
      'a container of another network': () => [
        ...['docker', '-H', dockerHost, 'run', '--rm', '--network', 'bridge'],
        ...['--entrypoint', 'bash', image],
      ],
      'a user of the machine': () => ['setpriv', '--reuid=65534', '--clear-groups', 'bash'],
      'a machine of the same segment': () => ['ip', 'netns', 'exec', hosts.namespace, 'bash'],
    };
    type Place = keyof typeof places;

    async function attack(place: Place, withKeys: readonly string[]): Promise<string> {
      const [command = '', ...args] = places[place]();
      const script = [...args, '-c', ATTACK, 'attack', addresses, withKeys.join(' ')];
      const { stdout } = await run(command, script, { timeout: 60_000 });
      expect(stdout).toMatch(/done\n$/);
      return stdout;
    }

    test.each(Object.keys(places) as Place[])(
      'refuse %s: in plain, with a wrong key, and with the key of another session',
      async (place) => {
        const wrong = [randomBytes(32).toString('hex'), linkKeyText(keys(other.workloadId))];
        const answers = await attack(place, wrong);
        expect(answers).not.toContain('RFB 0');
        expect(answers).not.toContain('webSocketDebuggerUrl');
        expect(answers).not.toContain('HTTP/1.1');
      },
    );

    test('answer who has the key, and so the attempts above would have shown an answer', async () => {
      for (const place of ['a user of the machine', 'a machine of the same segment'] as const) {
        const answers = await attack(place, [linkKeyText(keys(target.workloadId))]);
        expect(answers).toContain('RFB 003.008');
        expect(answers).toContain('webSocketDebuggerUrl');
      }
    });

    test('are not reached at the container’s own address through the machine, even with the key', () => {
      const own = addresses.split(' ').slice(2);
      for (const address of own) {
        const [host, port] = address.split(':');
        const connect = `exec 3<>/dev/tcp/${host}/${port}`;
        const args = ['netns', 'exec', hosts.namespace, 'timeout', '5', 'bash', '-c', connect];
        expect(() => execFileSync('ip', args, { stdio: 'pipe' })).toThrow();
      }
    });

    test('have a key that is readable nowhere but in the container’s own environment', () => {
      const key = linkKeyText(keys(target.workloadId));
      const id = containerOf(target);
      const find = `grep -rls ${key.slice(0, 32)} /home /tmp /etc /usr/local; echo searched`;
      expect(docker('exec', id, 'bash', '-c', find)).toBe('searched');
      expect(docker('logs', id)).not.toContain(key);
      // A process may end before its line is read.
      const lines = docker('exec', id, 'bash', '-c', 'cat /proc/[0-9]*/cmdline; true');
      expect(lines).toContain('chromium');
      expect(lines).not.toContain(key);
    });
  },
);
