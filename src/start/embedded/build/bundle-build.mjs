/** The program that builds the bundle of the service and of `bss`: node bundle-build.mjs ROOT FOLDER */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { runAsBuilder } from './build.mjs';

/** Programs, and threads: what Node runs by its path. */
const ENTRIES = [
  'src/main.ts',
  'src/apps/cli/bss.ts',
  'src/roles/gateway/bidi/bidi-program.ts',
  'src/features/profiles/list-contents.ts',
  'src/browsers/extensions/extension-program.ts',
  'src/start/archive/read-back.worker.ts',
];
/** Packages that few processes load, or that find files of theirs by their own path. */
const EXTERNAL =
  /^(?:@aws-sdk|@duckdb|@kubernetes|@scalar|chromium-bidi|dockerode|pino|pino-pretty|selfsigned)(?:\/|$)/;
const OURS = /\/(?:events|projections|src)\/[^]*\.(?:ts|mjs)$/;
const PACKAGES = /\/node_modules\//;
/** How the sources name the module itself, or a program of `ENTRIES` beside it. */
const SELF = /new URL\('(\.\/[^']+\.ts)', import\.meta\.url\)|import\.meta\.url/g;

function nameOf(file) {
  return basename(file, '.ts');
}

/**
 * A module finds the files beside it and in the checkout by its own URL, which stays that of its
 * source; the programs beside it are entries of the bundle. Each entry first loads what maps the
 * stacks of errors.
 */
function ownPlaces(root, entries) {
  return {
    name: 'own-places',
    transform: {
      filter: { id: OURS },
      handler(code, id) {
        const own = `new URL('../../${relative(root, id)}', import.meta.url).href`;
        const placed = code.replaceAll(SELF, (found, beside) => {
          const name = beside && entries.get(join(dirname(id), beside));
          return name ? `new URL('./${name}.js', import.meta.url)` : found.replace(SELF, own);
        });
        // On the first line, so that those of the source map stay.
        const mapped = entries.has(id)
          ? `import '#src/start/embedded/source-lines.mjs';${placed}`
          : placed;
        return mapped === code ? null : { code: mapped, map: null };
      },
    },
  };
}

/** The lines of packages are of no use to a reader of a stack, and four fifths of the maps. */
const withoutMaps = {
  name: 'without-maps',
  transform: {
    filter: { id: PACKAGES },
    handler: (code) => ({ code, map: { version: 3, sources: [], names: [], mappings: '' } }),
  },
};

/** Its key `private` cannot be exported by name. */
function packageFacts(root) {
  return {
    name: 'package-facts',
    load: {
      filter: { id: join(root, 'package.json') },
      handler: (id) => ({ code: `export default ${readFileSync(id, 'utf8')}`, moduleType: 'js' }),
    },
  };
}

await runAsBuilder(async ([root, folder]) => {
  const { rolldown } = await import('rolldown');
  const entries = new Map(ENTRIES.map((file) => [join(root, file), nameOf(file)]));
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries([...entries].map(([file, name]) => [name, file])),
    external: (id) => EXTERNAL.test(id),
    plugins: [ownPlaces(root, entries), withoutMaps, packageFacts(root)],
    onLog(level, { message }) {
      if (level === 'warn') process.stderr.write(`${message}\n`);
    },
  });
  await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    // Flat: `ownPlaces` counts on it.
    chunkFileNames: '[name]-[hash].js',
    keepNames: true,
    comments: false,
    // Of a text with one character beyond Latin-1 V8 keeps two bytes for each: 5 MiB of each process.
    charset: 'ascii',
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
});
