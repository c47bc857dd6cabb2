import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { nullIfGone } from '#test/support/scratch.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const OWN = 'browser-session-service';
const INSTALL_MS = 540_000;
/** For an example that hangs. */
const RUN_MS = 300_000;

/** What examples run with: this Node and its npm, no download of a browser, no telemetry. */
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1',
  PUPPETEER_SKIP_DOWNLOAD: '1',
  ANONYMIZED_TELEMETRY: 'false',
  CRAWLEE_LOG_LEVEL: 'WARNING',
};

/** The npm package of the client, built into the folder. @returns the path of its tarball */
export async function packClient(folder: string): Promise<string> {
  const { stdout } = await run(process.execPath, [join(ROOT, 'src/apps/client/pack.mjs'), folder]);
  return stdout.trim();
}

/**
 * A copy of a folder of test/examples, with its packages and the given client installed. Packages
 * of others stay in `.tools` until the example names other versions.
 * @param client tarball of `packClient`
 * @returns runs a program of the copy and resolves with what it prints
 */
export async function installExample(name: string, folder: string, client: string) {
  const source = join(ROOT, 'test/examples', name);
  const modules = await installOthers(name, join(source, 'package.json'));
  const project = join(folder, name, 'project');
  await cp(source, project, { recursive: true });
  // Node looks into both, from the inside out.
  await symlink(modules, join(folder, name, 'node_modules'));
  const own = join(project, 'node_modules', OWN);
  await mkdir(own, { recursive: true });
  await run('tar', ['-xzf', client, '-C', own, '--strip-components=1']);
  return async (program: string, args: string[], more: Record<string, string> = {}) => {
    const bin = `${join(modules, '.bin')}:${env.PATH}`;
    const settings = { cwd: project, env: { ...env, PATH: bin, ...more }, timeout: RUN_MS };
    const { stdout } = await run(program, args, settings);
    return stdout.trim();
  };
}

/** The packages of others that a package.json names. @returns their node_modules */
async function installOthers(name: string, path: string): Promise<string> {
  const manifest = JSON.parse(await readFile(path, 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const { [OWN]: _, ...dependencies } = manifest.dependencies;
  const text = JSON.stringify({ private: true, dependencies });
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
  const place = join(ROOT, '.tools', 'examples', `${name}-${hash}`);
  const modules = join(place, 'node_modules');
  if ((await readFile(join(place, 'package.json')).catch(nullIfGone)) !== null) return modules;
  await mkdir(dirname(place), { recursive: true });
  const made = await mkdtemp(`${place}.`);
  try {
    await writeFile(join(made, 'package.json'), text);
    const install = ['install', '--no-audit', '--no-fund', '--silent', '--fetch-timeout=30000'];
    await run('npm', install, { cwd: made, env, timeout: INSTALL_MS });
    // Another run may have been quicker.
    await rename(made, place).catch(nullIfThere);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return modules;
}

function nullIfThere(error: NodeJS.ErrnoException): null {
  if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  return null;
}
