import { execFile } from 'node:child_process';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { BrowserUser } from './programs.ts';
import { pidsIn, type Session } from './tree.ts';

/** Two ports on loopback: of a connection's client, and of what it came to. */
export type Connection = { clientPort: number; serverPort: number };

/** The client's end of a connection. */
type Peer = { uid: number; inode: string };

/** The longest wait for a list of open files that this process may not read by itself. */
const LIST_MS = 2_000;
const CONNECTED = '01';

/**
 * Tells whether connections on loopback come from a browser's own processes. All process browsers
 * of a host are one user's, so that the user alone says nothing: the process that holds the other
 * end has to be in a session of the browser's programs.
 * @param sessions of the browser's programs, as they are at the time of the call
 */
export function createPeerCheck(
  sessions: () => readonly Session[],
  user: BrowserUser,
): (connection: Connection) => Promise<boolean> {
  /** The process that had the last connection: Chromium has one for all of its network. */
  let likely: number | null = null;

  return async (connection) => {
    const peer = await peerOf(connection);
    if (peer === null || (user !== undefined && peer.uid !== user.uid)) return false;
    const members = await pidsIn(sessions());
    const first = members.filter((pid) => pid === likely);
    for (const pid of [...first, ...members.filter((pid) => pid !== likely)])
      if (await holds(pid, peer.inode, user)) {
        likely = pid;
        return true;
      }
    return false;
  };
}

/** The client's end; null: the connection is gone. */
async function peerOf(connection: Connection): Promise<Peer | null> {
  // A socket for both families has its connections over IPv4 in the other table.
  for (const table of ['tcp', 'tcp6']) {
    const text = await readFile(`/proc/net/${table}`, 'latin1').catch(() => '');
    const found = findPeer(text, connection);
    if (found !== null) return found;
  }
  return null;
}

/** Finds the client's end in the text of /proc/net/tcp. */
export function findPeer(text: string, { clientPort, serverPort }: Connection): Peer | null {
  for (const line of text.split('\n')) {
    const [, local = '', remote = '', state, , , , uid = '', , inode = ''] = line
      .trim()
      .split(/\s+/);
    if (state !== CONNECTED || portOf(local) !== clientPort || portOf(remote) !== serverPort)
      continue;
    return { uid: Number(uid), inode };
  }
  return null;
}

function portOf(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(':') + 1), 16);
}

/** Whether a process has the socket open. */
async function holds(pid: number, inode: string, user: BrowserUser): Promise<boolean> {
  const wanted = `socket:[${inode}]`;
  const folder = `/proc/${pid}/fd`;
  try {
    for (const fd of await readdir(folder))
      if ((await linkOf(`${folder}/${fd}`)) === wanted) return true;
    return false;
  } catch (error) {
    if (user === undefined || !isDenied(error)) return false;
    // Root without the capability to look into processes of others: their own user may.
    const as = { cwd: '/', timeout: LIST_MS, ...user };
    const listing = promisify(execFile)('/bin/ls', ['-l', folder], as);
    return (await listing.catch(() => ({ stdout: '' }))).stdout.includes(wanted);
  }
}

/** Where a link of /proc leads; empty: it is gone. @throws Error if this process may not look */
async function linkOf(path: string): Promise<string> {
  try {
    return await readlink(path);
  } catch (error) {
    if (isDenied(error)) throw error;
    return '';
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');
}
