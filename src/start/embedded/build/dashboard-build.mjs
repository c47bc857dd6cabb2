/** The program that builds the dashboard: node dashboard-build.mjs ROOT FOLDER */
import { readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { filesIn, runAsBuilder } from './build.mjs';
import { thirdPartyText } from './third-party.mjs';

/** The path of a package, with those that it is in. */
const PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

await runAsBuilder(async ([root, folder]) => {
  const { build } = await import('vite');
  const { output } = await build({
    configFile: join(root, 'src', 'apps', 'dashboard', 'vite.config.ts'),
    root: join(root, 'src', 'apps', 'dashboard'),
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true },
  });
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  // For addresses one folder below the service's, as /sessions/ses_1.
  await writeFile(join(folder, 'nested.html'), page.replaceAll('"./', '"../'));
  await writeFile(join(folder, 'licenses.txt'), thirdPartyText(root, packagesIn(root, output)));
  for (const name of filesIn(folder, '.')) {
    const file = join(folder, name);
    const bytes = await readFile(file);
    await writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: 9 }));
    await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes));
  }
});

/** The paths of the packages that the scripts are built from. */
function packagesIn(root, output) {
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  const packages = modules.map((id) => PACKAGE.exec(relative(root, id.replaceAll('\0', '')))?.[0]);
  return [...new Set(packages.filter((path) => path !== undefined))];
}
