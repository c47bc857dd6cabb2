/**
 * Builds an npm package of the client: types, and JavaScript for Node 20 and later and for
 * bundlers. `npm run pack:client [folder]` writes the tarball to the folder (default: dist) and prints its
 * path.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PACKAGE = join(ROOT, 'dist', 'client', 'package');
const CLIENT = join('src', 'apps', 'client');
const destination = resolve(process.argv[2] ?? join(ROOT, 'dist'));

rmSync(PACKAGE, { recursive: true, force: true });
run(process.execPath, [join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', CLIENT]);
for (const path of filesIn(PACKAGE)) {
  if (path.endsWith('.d.ts')) rewrite(path);
  // Only types of the rest of the service are used; their JavaScript is removed.
  else if (!relative(PACKAGE, path).startsWith(CLIENT)) rmSync(path);
}
copyTypebox();
cpSync(join(ROOT, CLIENT, 'README.md'), join(PACKAGE, 'README.md'));
const own = readJson(join(ROOT, 'package.json'));
const main = `./${CLIENT}/client`;
const manifest = {
  name: own.name,
  version: own.version,
  description: 'The client of the Browser Session Service',
  license: own.license,
  type: 'module',
  engines: { node: '>=20.3' },
  bin: { 'bss-mcp': `./${CLIENT}/mcp/stdio.js` },
  exports: { './client': { types: `${main}.d.ts`, default: `${main}.js` } },
  // The types are derived from TypeBox schemas; its code is not needed.
  dependencies: { typebox: own.dependencies.typebox },
  bundleDependencies: ['typebox'],
};
writeFileSync(join(PACKAGE, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
mkdirSync(destination, { recursive: true });
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const packed = run(npm, ['pack', '--silent', '--pack-destination', destination], PACKAGE);
process.stdout.write(`${join(destination, packed.trim().split('\n').at(-1) ?? '')}\n`);

/** Rewrites `#src/…` and `.ts` imports in declaration files; the compiler leaves them unchanged. */
function rewrite(path) {
  const text = readFileSync(path, 'utf8');
  const top = relative(dirname(path), PACKAGE) || '.';
  const rewritten = text
    .replaceAll(/(["'])#((?:events|src)\/[\w./-]+)\.ts\1/g, `'${top}/$2.js'`)
    .replaceAll(/(["'])(\.{1,2}\/[\w./-]+)\.ts\1/g, "'$2.js'");
  if (/["']#/.test(rewritten)) throw new Error(`${path} still has an import by #name`);
  writeFileSync(path, rewritten);
}

/** Copies only the types of TypeBox. */
function copyTypebox() {
  const from = join(ROOT, 'node_modules', 'typebox');
  cpSync(from, join(PACKAGE, 'node_modules', 'typebox'), { recursive: true, filter: isType });
}

function isType(path) {
  return extname(path) === '' || /\.d\.mts$|package\.json$/.test(path);
}

function filesIn(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** @returns stdout @throws Error if the command fails */
function run(command, args, cwd = ROOT) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} failed: ${error ?? ''}${stdout}${stderr}`);
}
