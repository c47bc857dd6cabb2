import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connectToBrowser, type BrowserAddress } from '#src/browsers/link/browser-link.ts';

/** A listening link answers within milliseconds; a busy machine may take longer. */
const ANSWER_MS = 10_000;
/** What a VNC server says first, and whatever else Chromium would answer to it. */
const REQUEST = 'GET /json/version HTTP/1.1\r\nHost: localhost\r\n\r\n';

/**
 * Checks that a link with a VNC server behind it answers its key, and neither another key nor plain
 * TCP.
 * @param address with the right key
 * @returns what was wrong, or null
 */
export async function checkLink(address: BrowserAddress): Promise<string | null> {
  const { host, port } = address;
  const at = `of a session at ${host}:${port}`;
  const withKey = await readFirst(address);
  if (!withKey.includes('RFB ')) return `the link ${at} does not answer its own key: ${withKey}`;
  const others = { 'another key': createSecretKey(randomBytes(32)), 'no key': undefined };
  for (const [who, linkKey] of Object.entries(others)) {
    const answer = await readFirst({ host, port, linkKey });
    if (answer.includes('RFB ')) return `the link ${at} answers ${who}`;
  }
  return null;
}

/** The first bytes of a connection as text; the error's message where there are none. */
async function readFirst(address: BrowserAddress): Promise<string> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const socket = connectToBrowser(address, { signal });
  try {
    if (address.linkKey === undefined) socket.write(REQUEST);
    const answered = once(socket, 'data') as Promise<[Buffer]>;
    const closed = once(socket, 'close').then(() => null);
    const first = await Promise.race([answered, closed]);
    return first === null ? 'nothing' : first[0].toString('latin1');
  } catch (error) {
    return (error as Error).message;
  } finally {
    socket.on('error', () => {}).destroy();
  }
}
