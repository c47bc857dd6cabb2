import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, chownSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { keepTail } from '../output.ts';
import { archiveOf, packArguments, unpackArguments } from '../chromium/profile-files.ts';
import type { BrowserUser } from './programs.ts';

/** A browser's folder, and its user: what a page may have left there is read as that user. */
type Place = { folder: string; user: BrowserUser };

const TAR = '/bin/tar';

/** Makes the profile's folder, before the browser's user can enter the one that it is in. */
export function makeProfileFolder({ folder, user }: Place): void {
  const profile = join(folder, 'profile');
  mkdirSync(profile, { mode: 0o700 });
  if (user !== undefined) chownSync(profile, user.uid, user.gid);
}

/** Fills the profile's folder from a tar, as the browser's user. @throws Error */
export async function unpackProfile(
  tar: AsyncIterable<Uint8Array>,
  { folder, user }: Place,
  signal: AbortSignal,
): Promise<void> {
  const profile = join(folder, 'profile');
  const unpacking = start(unpackArguments(profile), user, ['pipe', 'ignore', 'pipe']);
  const { stdin } = unpacking.child;
  if (stdin === null) throw new Error('tar has no input');
  const feeding = pipeline(tar, stdin, { signal });
  try {
    await Promise.all([feeding, unpacking.done]);
  } catch (error) {
    unpacking.child.kill('SIGKILL');
    // tar's own word says more than a broken pipe.
    await Promise.allSettled([feeding, unpacking.done]);
    throw error;
  }
}

/** The archive of the profile's folder. @throws Error where it cannot be read to its end */
export async function* packProfile(
  { folder, user }: Place,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const packing = start(packArguments(join(folder, 'profile')), user, ['ignore', 'pipe', 'pipe']);
  const { stdout } = packing.child;
  if (stdout === null) throw new Error('tar has no output');
  const abort = (): void => void stdout.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    yield* archiveOf(stdout as AsyncIterable<Uint8Array>, '.');
    await packing.done;
  } finally {
    signal.removeEventListener('abort', abort);
    packing.child.kill('SIGKILL');
  }
}

function start(
  args: string[],
  user: BrowserUser,
  stdio: ['pipe' | 'ignore', 'pipe' | 'ignore', 'pipe'],
): { child: ChildProcess; done: Promise<void> } {
  const child = spawn(TAR, args, { cwd: '/', env: { LANG: 'C' }, stdio, ...user });
  const said = keepTail();
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n')) if (line !== '') said.add(line);
  });
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  child.on('error', reject);
  child.on('close', (code) =>
    code === 0 ? resolve() : reject(new Error(`tar ended with ${code}: ${said.text()}`)),
  );
  done.catch(() => undefined);
  return { child, done };
}
