import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { toolFolder, toolName } from '#src/start/embedded/install/tool-folder.mjs';

/** The release before this one: a commit of this repository. */
export const PREVIOUS_RELEASE = '7f3de0e';

const run = promisify(execFile);
const TOP = fileURLToPath(new URL('../../..', import.meta.url));

/** The source of a release in a folder of its own. */
export type Release = AsyncDisposable & { main: string };

/**
 * The previous release, with the npm packages of its lock file.
 * @throws Error without the repository's history
 */
export async function previousRelease(): Promise<Release> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-previous-'));
  const archive = join(folder, 'release.tar');
  try {
    await run('git', ['archive', '--output', archive, PREVIOUS_RELEASE], { cwd: TOP });
  } catch (error) {
    await rm(folder, { recursive: true });
    const advice = 'this test needs the whole history: git fetch --unshallow';
    throw new Error(`there is no commit ${PREVIOUS_RELEASE}: ${advice}`, { cause: error });
  }
  await run('tar', ['-xf', archive, '-C', folder]);
  const lockFile = (top: string) => readFile(join(top, 'package-lock.json'), 'utf8');
  const [theirs, ours] = await Promise.all([lockFile(folder), lockFile(TOP)]);
  const packages = theirs === ours ? TOP : await packagesOf(folder, theirs);
  await symlink(join(packages, 'node_modules'), join(folder, 'node_modules'));
  return releaseIn(folder);
}

/** A folder with the npm packages of that lock file, which is kept for later runs. */
async function packagesOf(release: string, lockFile: string): Promise<string> {
  const tools = toolFolder(TOP);
  const hash = createHash('sha256').update(lockFile).digest('hex').slice(0, 12);
  const kept = join(tools, toolName('packages', hash));
  if (existsSync(kept)) return kept;
  await mkdir(tools, { recursive: true });
  const stage = await mkdtemp(`${kept}.new-`);
  try {
    for (const file of ['package.json', 'package-lock.json'])
      await copyFile(join(release, file), join(stage, file));
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: stage });
    // Another run may have been first.
    await rename(stage, kept).catch((error: unknown) => {
      if (!existsSync(kept)) throw error;
    });
    return kept;
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** What the next release changes: the new text for a text that a file has once. */
const changes: readonly (readonly [file: string, before: string, after: string])[] = [
  [
    'events/events.ts',
    'state: SessionState, stateVersion: 1 }',
    'state: SessionState, stateVersion: 2 }',
  ],
  [
    'events/session.ts',
    'export const sessionEvents = {',
    "export const sessionEvents = { 'session.noted': Type.Object({ note: Type.String() }),",
  ],
  [
    'src/kernel/domain/session/session.ts',
    '  if (session === null) throw',
    "  if ((event.type as string) === 'session.noted' && session !== null) return session;\n" +
      '  if (session === null) throw',
  ],
];

/**
 * A release that could follow this one: this source, in which sessions have a state of another
 * version and one more type of event, `session.noted`. Nothing of it appends that event by itself.
 */
export async function nextRelease(): Promise<Release> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-next-'));
  await mkdir(join(folder, 'deploy'));
  for (const part of [
    'events',
    'projections',
    'src',
    'deploy',
    'package.json',
    'package-lock.json',
  ])
    await cp(join(TOP, part), join(folder, part), { recursive: true });
  await symlink(join(TOP, 'node_modules'), join(folder, 'node_modules'));
  for (const [name, before, after] of changes) {
    const file = join(folder, name);
    const text = await readFile(file, 'utf8');
    if (text.split(before).length !== 2) throw new Error(`${name} has not once: ${before}`);
    await writeFile(file, text.replace(before, after));
  }
  return releaseIn(folder);
}

function releaseIn(folder: string): Release {
  return {
    main: join(folder, 'src/main.ts'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
