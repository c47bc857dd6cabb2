import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A connection on which a test writes HTTP by itself, and what was said on it so far. */
export type RawConnection = Socket & { said: () => string };

/** Connects to the server at the address; the connection ends with the test. */
export async function openConnection({ hostname, port }: URL): Promise<RawConnection> {
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.setEncoding('utf8').on('data', (text: string) => void (said += text));
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return Object.assign(socket, { said: () => said });
}

/** The head of a request that uploads a file of the length to a session. */
export function uploadHead(sessionId: string, name: string, length: number): string {
  const path = `/api/sessions/${sessionId}/files/${name}`;
  const head = 'Host: a\r\nAuthorization: Bearer any\r\n';
  return `PUT ${path} HTTP/1.1\r\n${head}Content-Length: ${length}\r\n\r\n`;
}
