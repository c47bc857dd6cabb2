import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createPeerCheck, findPeer } from '#src/browsers/process/peers.ts';
import { processStart, type Session } from '#src/browsers/process/tree.ts';

/** Who is at the other end of a connection on loopback. */

let server: Server;
let serverPort: number;
beforeAll(async () => {
  server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  serverPort = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/**
 * A program in a session of its own that connects, or lets a child of its own do so. In bash, which
 * every user may run; this Node may be in a folder of root's.
 */
async function connected(how: 'itself' | 'a child'): Promise<[Session, number]> {
  const code = `exec 3<>/dev/tcp/127.0.0.1/${serverPort}; read -u 3`;
  const args = how === 'itself' ? ['-c', code] : ['-c', 'bash -c "$0" & wait', code];
  const coming = once(server, 'connection') as Promise<[Socket]>;
  const child = spawn('/bin/bash', args, {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
    ...user,
  });
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error('bash has no pid');
  onTestFinished(() => void process.kill(-pid, 'SIGKILL'));
  const [socket] = await coming;
  onTestFinished(() => void socket.destroy());
  const session = { pid, startTicks: processStart(pid) ?? 0 };
  return [session, socket.remotePort ?? 0];
}

test.each(['itself', 'a child'] as const)(
  'a connection of a browser is its own if %s made it, and that of no other browser',
  async (how) => {
    const [mine, clientPort] = await connected(how);
    const [other, otherPort] = await connected(how);
    const isMine = createPeerCheck(() => [mine], user);
    expect(await isMine({ clientPort, serverPort })).toBe(true);
    expect(await isMine({ clientPort: otherPort, serverPort })).toBe(false);
    const isOthers = createPeerCheck(() => [other], user);
    expect(await isOthers({ clientPort: otherPort, serverPort })).toBe(true);
    expect(await isOthers({ clientPort, serverPort })).toBe(false);
  },
);

test('a connection of another program, or one that is gone, is not the browser’s', async () => {
  const [mine] = await connected('itself');
  const isMine = createPeerCheck(() => [mine], user);
  const socket = connect(serverPort, '127.0.0.1');
  await once(socket, 'connect');
  const clientPort = socket.localPort ?? 0;
  expect(await isMine({ clientPort, serverPort })).toBe(false);
  socket.destroy();
  await once(socket, 'close');
  expect(await isMine({ clientPort, serverPort })).toBe(false);
});

test('many connections at once share looks at the machine', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => connected('itself')));
  const sessions = all.map(([session]) => session);
  let looks = 0;
  const isMine = createPeerCheck(() => {
    looks += 1;
    return sessions;
  }, user);
  const asked = all.map(([, clientPort]) => isMine({ clientPort, serverPort }));
  expect(await Promise.all(asked)).toEqual(all.map(() => true));
  expect(looks).toBeLessThan(all.length / 2);
});

test('a pid that belongs to another program by now is not the browser’s', async () => {
  const [mine, clientPort] = await connected('itself');
  const reused = { ...mine, startTicks: mine.startTicks - 1 };
  expect(await createPeerCheck(() => [reused], user)({ clientPort, serverPort })).toBe(false);
  expect(await createPeerCheck(() => [], user)({ clientPort, serverPort })).toBe(false);
});

test('the client’s end is found by both ports, and only while it is connected', () => {
  const row = (local: string, remote: string, state: string, uid: number, inode: number) =>
    `   1: ${local} ${remote} ${state} 0:0 00:0 0 ${uid} 0 ${inode} 1 0`;
  const table = [
    '  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode',
    row('0100007F:1F90', '00000000:0000', '0A', 0, 1),
    row('0100007F:1F90', '0100007F:C001', '01', 0, 2),
    row('0100007F:C001', '0100007F:1F91', '01', 7, 3),
    row('0100007F:C001', '0100007F:1F90', '06', 7, 4),
    row('0100007F:C001', '0100007F:1F90', '01', 65_534, 5),
  ].join('\n');
  const found = findPeer(table, { clientPort: 0xc001, serverPort: 0x1f90 });
  expect(found).toEqual({ uid: 65_534, inode: '5' });
  expect(findPeer(table, { clientPort: 0xc002, serverPort: 0x1f90 })).toBeNull();
  const mapped = table.replaceAll('0100007F', '0000000000000000FFFF00000100007F');
  expect(findPeer(mapped, { clientPort: 0xc001, serverPort: 0x1f90 })).toEqual(found);
  // Another program at 127.0.0.2 with the client's port.
  const others = table.replaceAll('0100007F:C001', '0200007F:C001');
  expect(findPeer(others, { clientPort: 0xc001, serverPort: 0x1f90 })).toBeNull();
});
