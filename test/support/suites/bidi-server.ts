import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { DEV_KEY } from '../service/service.ts';

/**
 * A server of WebDriver BiDi as others' suites expect one: each connection to /session is a browser
 * of its own, which ends with it. Here it is a session of the service.
 */
export async function startBidiServer(apiUrl: string) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: '/session' });
  await once(server, 'listening');
  const authorization = `Bearer ${DEV_KEY}`;
  const begin = async () => {
    const headers = { authorization, 'content-type': 'application/json' };
    const body = JSON.stringify({ headless: true, idle_timeout: '5m' });
    const answer = await fetch(`${apiUrl}/api/sessions`, { method: 'POST', headers, body });
    return (await answer.json()) as { id: string; bidi_url: string };
  };
  const open = new Set<Promise<void>>();

  async function serve(client: WebSocket): Promise<void> {
    const waiting: string[] = [];
    const hold = (data: RawData) => void waiting.push((data as Buffer).toString());
    client.on('message', hold);
    client.on('error', () => undefined);
    const { id, bidi_url: url } = await begin();
    try {
      const session = new WebSocket(`${url}/session`);
      session.on('error', () => client.terminate());
      await once(session, 'open');
      client.off('message', hold);
      for (const text of waiting) session.send(text);
      client.on('message', (data, isBinary) => session.send(data, { binary: isBinary }));
      session.on('message', (data, isBinary) => client.send(data, { binary: isBinary }));
      session.once('close', () => client.close());
      if (client.readyState === WebSocket.OPEN) await once(client, 'close');
      session.terminate();
    } finally {
      await fetch(`${apiUrl}/api/sessions/${id}`, { method: 'DELETE', headers: { authorization } });
    }
  }
  server.on('connection', (client) => {
    const served = serve(client).catch(() => client.terminate());
    open.add(served);
    void served.finally(() => open.delete(served));
  });
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      await Promise.all(open);
      server.close();
    },
  };
}
