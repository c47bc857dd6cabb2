import { archiveOf, packArguments, unpackArguments } from '../chromium/profile-files.ts';
import type { BrowserSpec } from '../browsers.ts';
import { extensionsTar } from '../extensions/unpack.ts';
import type { Cluster } from './cluster.ts';
import { execute, output } from './exec.ts';
import { BROWSER, KEEPER } from './naming.ts';
import { EXTENSIONS, PROFILE_DATA, READY_FILE } from './pod.ts';

/** What a browser is launched with, and its profile. */

/**
 * Fills the volumes of a Pod whose keeper runs, and lets its browser start.
 * @throws what reading an extension or the profile throws; the signal's reason; Error where the
 * Pod fails
 */
export async function prepare(
  cluster: Cluster,
  pod: string,
  { extensions, profile }: BrowserSpec,
  signal: AbortSignal,
): Promise<void> {
  const place = { pod, container: KEEPER };
  const run = (command: string[], input?: AsyncIterable<Uint8Array>) =>
    execute(cluster, place, command, { signal, ...(input === undefined ? {} : { input }) });
  await run(['mkdir', '-p', '-m', '700', EXTENSIONS, PROFILE_DATA]);
  if (extensions !== undefined)
    await run(['tar', ...unpackArguments(EXTENSIONS)], extensionsTar(extensions));
  if (profile !== undefined && profile.tar !== null)
    await run(['tar', ...unpackArguments(PROFILE_DATA)], profile.tar);
  await run(['touch', READY_FILE]);
}

/** The browser's programs stand still at the longest for this while its profile is read. */
const PAUSED_SECONDS = 120;
/** Signals all programs of the container but itself, and the first, which only waits for them. */
const PACK = `timeout ${PAUSED_SECONDS} tar "$@"`;
const PAUSE_AND_PACK = `kill -STOP -1; ${PACK}; code=$?; kill -CONT -1; exit $code`;
const RESUMED_WITHIN_MS = 10_000;

/**
 * The archive of the profile of a browser that has ended: its keeper reads it.
 * @throws Error where the Pod fails, also while it is read; the signal's reason
 */
export function readProfile(
  cluster: Cluster,
  pod: string,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const command = ['tar', ...packArguments(PROFILE_DATA)];
  return archiveOf(output(cluster, { pod, container: KEEPER }, command, { signal }), '.');
}

/** The same of a browser that runs: it stands still meanwhile. */
export async function* readRunningProfile(
  cluster: Cluster,
  pod: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const place = { pod, container: BROWSER };
  const command = ['bash', '-c', PAUSE_AND_PACK, 'pack', ...packArguments(PROFILE_DATA)];
  let isRead = false;
  try {
    yield* archiveOf(output(cluster, place, command, { signal }), '.');
    isRead = true;
  } finally {
    if (!isRead) await resume(cluster, pod);
  }
}

/** Lets a browser go on that a reader has left standing. One that has ended stays as it is. */
export async function resume(cluster: Cluster, pod: string): Promise<void> {
  const signal = AbortSignal.timeout(RESUMED_WITHIN_MS);
  const place = { pod, container: BROWSER };
  await execute(cluster, place, ['bash', '-c', 'kill -CONT -1'], { signal }).catch(() => undefined);
}
