import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { doubling, retry } from '#src/kernel/async/retry.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { BrowserSpec } from '../../browsers.ts';
import { archiveOf } from '../../chromium/profile-files.ts';
import { bounded, statusOf } from '../engine.ts';
import { OWNER, putTar } from './archive.ts';

/**
 * The profile of a browser that is launched with one: in a volume of its container, since the
 * engine reads it after the browser has ended, when a tmpfs is gone.
 */
const VOLUME = '/profile';
/** Below the volume, whose own owner is root. */
const DATA = 'data';
const RESUMED_WITHIN_MS = 5_000;
const RESUME_PAUSE_MS = doubling(250, 5_000);

/** A volume without a name is the container's own, and removed with it. */
export function profileMounts({ profile }: BrowserSpec): Docker.MountSettings[] {
  return profile === undefined ? [] : [{ Type: 'volume', Target: VOLUME, Source: '' }];
}

/** Whether a container was launched with a profile. */
export function hasProfile(mounts: readonly { Destination: string }[]): boolean {
  return mounts.some(({ Destination }) => Destination === VOLUME);
}

/** Chromium takes the last `--user-data-dir`: deploy/browser/entrypoint.sh has one before. */
export function profileFlags({ profile }: BrowserSpec): string[] {
  return profile === undefined
    ? []
    : [`--user-data-dir=${VOLUME}/${DATA}`, '--disk-cache-dir=/tmp/cache'];
}

/**
 * Fills the volume of a container that has not started.
 * @param tar null: an empty profile
 * @throws what the tar throws; the signal's reason; the engine's error
 */
export async function putProfile(
  container: Docker.Container,
  tar: AsyncIterable<Uint8Array> | null,
  signal: AbortSignal,
): Promise<void> {
  await putTar(container, emptyFolder(), VOLUME, signal);
  if (tar !== null) await putTar(container, Readable.from(tar), `${VOLUME}/${DATA}`, signal);
}

function emptyFolder(): Readable {
  const tar = pack();
  tar.entry({ name: DATA, type: 'directory', mode: 0o700, ...OWNER });
  tar.finalize();
  return Readable.from(tar, { objectMode: false });
}

/**
 * The archive of the profile of a container that has ended, or that is paused while it is read.
 * @throws the engine's error, also while it is read; the signal's reason
 */
export async function* readProfile(
  container: Docker.Container,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { State } = await container.inspect(bounded(signal));
  const mustPause = State.Running && !State.Paused;
  const cut = new AbortController();
  try {
    if (mustPause) await container.pause(bounded(signal));
    const archive = await container.getArchive({
      path: `${VOLUME}/${DATA}`,
      abortSignal: AbortSignal.any([signal, cut.signal]),
    });
    yield* archiveOf(archive as NodeJS.ReadableStream & AsyncIterable<Buffer>, DATA);
  } finally {
    cut.abort();
    // The reader does not wait longer for an engine that is away.
    if (mustPause) await within(RESUMED_WITHIN_MS, resume(container), () => undefined);
  }
}

/**
 * What the profile takes on the engine's disk; null: the program that counts it was kept from it.
 * @throws the engine's error
 */
export async function profileBytes(container: Docker.Container): Promise<number | null> {
  const exec = await container.exec({
    Cmd: ['du', '--summarize', '--block-size=1', `${VOLUME}/${DATA}`],
    User: `${OWNER.uid}`,
    AttachStdout: true,
    Tty: true, // then the output is as it is, without a header for each piece
    ...bounded(),
  });
  const output = await text(await exec.start({ Tty: true, ...bounded() }));
  const told = /^(\d+)\t/m.exec(output)?.[1];
  return told === undefined ? null : Number(told);
}

/** Lets a container go on as soon as the engine answers; else it would stand until a restart. */
function resume(container: Docker.Container): Promise<void> {
  const again = { pauseMs: RESUME_PAUSE_MS, isTransient: isUnanswered };
  return retry(again, () => unpause(container));
}

function isUnanswered(error: unknown): boolean {
  return statusOf(error) === null;
}

/** Lets a paused container go on; one that is not paused, or that has ended, stays as it is. */
export async function unpause(container: Docker.Container): Promise<void> {
  try {
    await container.unpause(bounded());
  } catch (error) {
    // 409, or 500 of older engines: it is not paused.
    if (isUnanswered(error)) throw error;
  }
}
