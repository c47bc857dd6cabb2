import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createExtensionReader } from '#src/browsers/extensions/extension-reader.ts';
import { readExtension } from '#src/browsers/extensions/read-extension.ts';
import { crxOf, extensionZip } from '#test/support/extensions/extension-zip.ts';
import { scratchDir } from '#test/support/scratch.ts';

/** The process that reads uploads. */

const TURNS = { slots: 1, slotsPerOwner: 1, places: 4, placesPerOwner: 3 };
const refusal = { code: 'UNAVAILABLE', context: { part: 'extension-reader' } };

test('says the same as who reads in its own process', async () => {
  const reader = createExtensionReader(rethrow);
  const [zip, crx] = [await extensionZip(), crxOf(await extensionZip())];
  expect(await reader.read('acme', zip)).toEqual(await readExtension(zip));
  expect(await reader.read('acme', crx)).toEqual(await readExtension(zip));
});

test('a bomb is refused, while this process goes on and grows by nothing', async () => {
  const bomb = await extensionZip('[],'.repeat(33 * 1024 ** 2));
  const before = process.memoryUsage().rss;
  const busyBefore = process.cpuUsage();
  const read = await createExtensionReader(rethrow).read('acme', bomb);
  expect(read).toMatchObject({ code: 'INVALID_EXTENSION' });
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 ** 2);
  const { user, system } = process.cpuUsage(busyBefore);
  // To parse it takes this process ten seconds of a core.
  expect(user + system).toBeLessThan(5_000_000);
});

test('one that hangs is killed, one that crashes or says too much is no answer', async () => {
  await using folder = await scratchDir();
  const failures: unknown[] = [];
  const programs = {
    hangs: 'setInterval(() => undefined, 1_000);',
    crashes: 'process.exit(3);',
    grows: 'const all = []; for (;;) all.push(new Array(1_000).fill(all.length));',
    talks: "process.stdout.write('x'.repeat(100_000));",
  };
  for (const [name, code] of Object.entries(programs)) {
    const program = join(folder.path, `${name}.mjs`);
    await writeFile(program, code);
    const readMs = name === 'hangs' ? 200 : 60_000;
    const reader = createExtensionReader((error) => failures.push(error), { program, readMs });
    expect(await reader.read('acme', Buffer.alloc(1024 ** 2))).toMatchObject(refusal);
  }
  expect(failures).toHaveLength(4);
});

test('an organization that sends many waits for itself, and others have their turn', async () => {
  await using folder = await scratchDir();
  const program = join(folder.path, 'says.mjs');
  await writeFile(
    program,
    'process.stdin.resume().on(\'end\', () => process.stdout.write(\'{"bad":"no"}\'));',
  );
  const reader = createExtensionReader(rethrow, { program, turns: TURNS });
  const order: string[] = [];
  const read = async (organization: string) => {
    const found = await reader.read(organization, Buffer.alloc(1));
    order.push(`${organization} ${'code' in found ? found.code : ''}`);
  };
  const asked = ['acme', 'acme', 'acme', 'acme', 'other', 'third'];
  await Promise.all(asked.map(read));
  expect(order.slice(0, 2).toSorted()).toEqual(['acme UNAVAILABLE', 'third UNAVAILABLE']);
  expect(order.slice(2)).toEqual([
    'acme INVALID_EXTENSION',
    'acme INVALID_EXTENSION',
    'other INVALID_EXTENSION',
    'acme INVALID_EXTENSION',
  ]);
});

function rethrow(error: unknown): never {
  throw error as Error;
}
