/** The program that builds the dashboard: node dashboard-build.mjs ROOT FOLDER */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { filesIn, runAsBuilder } from './build.mjs';

await runAsBuilder(async ([root, folder]) => {
  const { build } = await import('vite');
  await build({
    configFile: join(root, 'src', 'dashboard', 'vite.config.ts'),
    root: join(root, 'src', 'dashboard'),
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true },
  });
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  // For addresses one folder below the service's, as /sessions/ses_1.
  await writeFile(join(folder, 'nested.html'), page.replaceAll('"./', '"../'));
  for (const name of filesIn(folder, '.')) {
    const file = join(folder, name);
    const bytes = await readFile(file);
    await writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: 9 }));
    await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes));
  }
});
