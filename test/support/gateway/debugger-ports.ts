import { connect } from 'node:net';
import { startSession } from '#test/support/gateway.fixture.ts';
import { freePorts } from '#test/support/servers/ports.ts';

/** A gateway with the session `s1`, and so many ports. */
export async function startWithPorts(count: number) {
  const ports = await freePorts(count);
  const debuggerPorts = { ports, bind: '127.0.0.1', host: '127.0.0.1' };
  const site = await startSession({ debuggerPorts });
  const ask = async (method: string, ticket: string) => {
    const headers = { 'x-bss-ticket': ticket };
    const answer = await fetch(`${site.http}/devtools/debugger-address`, { method, headers });
    const body = (await answer.json()) as Record<string, unknown>;
    return { status: answer.status, body, address: String(body['address']) };
  };
  const ticket = (id: string, holder = 'a'.repeat(12), organization = 'org') =>
    site.tickets.issue('cdp', organization, id, { epoch: 0, holder });
  return { site, ports, ask, ticket };
}

/** A client of that address that has sent these bytes, and nothing after them. */
export async function openAfter(address: string, bytes: string) {
  const [host = '', port = ''] = address.split(':');
  const socket = connect({ host, port: Number(port) });
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.on('error', () => {}).resume();
  if (bytes !== '') socket.write(bytes);
  return { closed: new Promise((resolve) => socket.once('close', resolve)) };
}

export const HALF_A_HEADER = 'GET /json/version HTTP/1.1\r\nHost: local';

/** Whether nothing serves at that address. */
export const isClosed = (address: string) =>
  fetch(`http://${address}/json/version`).then(
    () => false,
    () => true,
  );
