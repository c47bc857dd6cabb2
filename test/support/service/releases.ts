import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));

/** The source of a release in a folder of its own. */
export type Release = AsyncDisposable & { main: string };

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
