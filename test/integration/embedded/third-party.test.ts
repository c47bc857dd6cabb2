import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { dashboardFolder } from '#src/start/embedded/build/dashboard.mjs';
import { productionPackages, thirdPartyText } from '#src/start/embedded/build/third-party.mjs';
import { scratchDir } from '#test/support/scratch.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('the licences that are built with the dashboard', () => {
  let text = '';
  let sections: string[] = [];
  beforeAll(async () => {
    text = await readFile(join(dashboardFolder(ROOT), 'licenses.txt'), 'utf8');
    sections = text.split(`\n\n${'-'.repeat(80)}\n\n`);
  });
  const sectionOf = (title: string) => sections.find((one) => `\n${one}`.includes(`\n${title}`));

  it('have an entry, with a text, of every production package of package-lock.json', () => {
    const packages = productionPackages(ROOT);
    expect(packages.length).toBeGreaterThan(100);
    const without = packages.filter(({ name, version }) => {
      const [titles = '', ...texts] = (sectionOf(`${name} ${version} (`) ?? '').split('\n\n');
      return titles === '' || texts.join().length < 200;
    });
    expect(without.map(({ path }) => path)).toEqual([]);
    expect(text).not.toContain('unknown licence');
  });

  it('have those of the packages that only the dashboard is built from, and of noVNC', async () => {
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>;
    };
    for (const name of ['preact', '@preact/signals', '@tanstack/virtual-core', 'uplot'])
      expect(sectionOf(`${name} ${devDependencies[name]} (MIT)`)).toContain('Permission is hereby');
    const noVnc = sectionOf('@novnc/novnc ');
    expect(noVnc).toContain('Mozilla Public License Version 2.0');
    // What noVNC has taken in.
    expect(noVnc).toContain('Vitaly Puzrin');
    // Only what is given on is listed.
    expect(sectionOf('vitest ')).toBeUndefined();
  });

  it('have the service’s own', async () => {
    expect(text).toContain((await readFile(join(ROOT, 'LICENSE'), 'utf8')).trim());
  });
});

it('a package without a text gets that of its licence under its author’s name', async () => {
  await using dir = await scratchDir();
  const packages = { '': {}, 'node_modules/one': { version: '1.0.0', license: 'ISC' } };
  await lockAndPackage(dir.path, packages, { author: { name: 'Ada Lovelace' } });
  const text = thirdPartyText(dir.path, []);
  expect(text).toContain('one 1.0.0 (ISC)\n\nCopyright (c) Ada Lovelace\n\nPermission to use');
});

it('a package whose licence has no text anywhere ends the build with its name', async () => {
  await using dir = await scratchDir();
  const packages = { '': {}, 'node_modules/one': { version: '1.0.0', license: 'Rare-1.0' } };
  await lockAndPackage(dir.path, packages, {});
  expect(() => thirdPartyText(dir.path, [])).toThrow('one: no text of its licence Rare-1.0');
});

it('an optional package that npm could not install is not given on, and ends no build', async () => {
  await using dir = await scratchDir();
  const absent = { version: '1.0.0', license: 'Rare-1.0', optional: true };
  const packages = {
    '': {},
    'node_modules/one': { version: '1.0.0', license: 'ISC' },
    'node_modules/absent': absent,
  };
  await lockAndPackage(dir.path, packages, {});
  expect(thirdPartyText(dir.path, [])).not.toContain('absent');
});

async function lockAndPackage(root: string, packages: object, manifest: object): Promise<void> {
  await mkdir(`${root}/node_modules/one`, { recursive: true });
  await writeFile(`${root}/LICENSE`, 'The licence of the project');
  await writeFile(`${root}/package-lock.json`, JSON.stringify({ packages }));
  await writeFile(`${root}/node_modules/one/package.json`, JSON.stringify(manifest));
}
