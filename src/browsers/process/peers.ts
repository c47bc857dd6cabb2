import { execFile } from 'node:child_process';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { BrowserUser } from './programs.ts';
import { coalesce } from '#src/kernel/async/coalesce.ts';
import { pidsIn, processStart, type Session } from './tree.ts';

/** Two ports of 127.0.0.1: of a connection's client, and of what it came to. */
export type Connection = { clientPort: number; serverPort: number };

/** The client's end of a connection. */
type Peer = { uid: number; inode: string };

/** The longest wait for a list of open files that this process may not read by itself. */
const LIST_MS = 2_000;
const CONNECTED = '01';
/** 127.0.0.1 in the tables of the kernel, which has each word of an address in reverse. */
const LOOPBACK = ['0100007F', '0000000000000000FFFF00000100007F'];

/** Checks at once share a look at the machine that begins after all of them. */
const tables = coalesce((name) => readFile(`/proc/net/${name}`, 'latin1').catch(() => ''));

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
  const members = coalesce(() => pidsIn(sessions()));
  /** The process that had the last connection: Chromium has one for all of its network. */
  let likely: Session | null = null;

  return async (connection) => {
    const peer = await peerOf(connection);
    if (peer === null || (user !== undefined && peer.uid !== user.uid)) return false;
    const { pid, startTicks } = likely ?? {};
    if (
      pid !== undefined &&
      processStart(pid) === startTicks &&
      (await holds(pid, peer.inode, user))
    )
      return true;
    for (const member of await members('all'))
      if (await holds(member, peer.inode, user)) {
        likely = { pid: member, startTicks: processStart(member) ?? 0 };
        return true;
      }
    return false;
  };
}

/** The client's end; null: the connection is gone. */
async function peerOf(connection: Connection): Promise<Peer | null> {
  // A socket for both families has its connections over IPv4 in the other table.
  for (const table of ['tcp', 'tcp6']) {
    const found = findPeer(await tables(table), connection);
    if (found !== null) return found;
  }
  return null;
}

/** Finds the client's end in the text of /proc/net/tcp or tcp6. */
export function findPeer(text: string, { clientPort, serverPort }: Connection): Peer | null {
  for (const line of text.split('\n')) {
    const [, local = '', remote = '', state, , , , uid = '', , inode = ''] = line
      .trim()
      .split(/\s+/);
    if (state !== CONNECTED || !isAt(local, clientPort) || !isAt(remote, serverPort)) continue;
    return { uid: Number(uid), inode };
  }
  return null;
}

/** Whether an address of the table, as `0100007F:1F90`, is that port of 127.0.0.1. */
function isAt(place: string, port: number): boolean {
  const [address = '', digits = ''] = place.split(':');
  return LOOPBACK.includes(address) && Number.parseInt(digits, 16) === port;
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
