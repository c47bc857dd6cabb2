import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { debianSource, releaseSource } from '#src/start/embedded/install/fetch-nats-server.ts';
import { PINNED, verify, type PinnedName } from '#src/start/embedded/install/pinned.mjs';
import { ensurePrograms, MissingProgram } from '#src/start/embedded/install/programs.ts';
import { runCommand } from '#src/start/embedded/run-command.ts';
import { toolFolder, toolName } from '#src/start/embedded/install/tool-folder.mjs';
import { scratchDir } from '#test/support/scratch.ts';

afterEach(() => vi.unstubAllEnvs());

test('the error for a too old nats-server names the variable, its version and the required one', async () => {
  await using dir = await scratchDir();
  const old = await fakeProgram(`${dir.path}/nats-server`, 'echo nats-server: v2.9.10');
  vi.stubEnv('NATS_SERVER', old);
  const found = ensurePrograms(['nats-server'], () => {});
  await expect(found).rejects.toThrow(MissingProgram);
  await expect(found).rejects.toThrow(`NATS_SERVER: ${old} is 2.9.10; 2.12 or later is required`);
});

test('the error for a path that is not a program names the variable', async () => {
  vi.stubEnv('CHROMIUM', '/nowhere/chromium');
  const found = ensurePrograms(['chromium'], () => {});
  await expect(found).rejects.toThrow('CHROMIUM: /nowhere/chromium is not a program');
});

test('the error for a program that cannot be installed has the command to install it by hand', async () => {
  await using dir = await scratchDir();
  vi.stubEnv('XTIGERVNC', '');
  vi.stubEnv('PATH', dir.path);
  vi.stubEnv('BSS_INSTALL', 'yes');
  const lines: string[] = [];
  const found = ensurePrograms(['Xtigervnc'], (line) => lines.push(line));
  await expect(found).rejects.toThrow(MissingProgram);
  await expect(found).rejects.toThrow('Xtigervnc is missing and could not be installed');
  await expect(found).rejects.toThrow(
    'apt-get install --no-install-recommends tigervnc-standalone-server',
  );
  expect(lines.at(-1)).toBe('Installing tigervnc-standalone-server…');
});

test('a wrapper script of chromium is not accepted', async () => {
  await using dir = await scratchDir();
  await fakeProgram(`${dir.path}/chromium`, 'exec /usr/lib/chromium/chromium "$@"');
  vi.stubEnv('CHROMIUM', '');
  vi.stubEnv('PATH', dir.path);
  const found = await ensurePrograms(['chromium'], () => {}).catch((error: unknown) => error);
  // Elsewhere on this machine it may be; what must not come is the wrapper.
  expect(JSON.stringify(found)).not.toContain(`${dir.path}/chromium"`);
});

test('a program in the user’s cache folder is taken by every checkout, and passed over once it does not run', async () => {
  await using dir = await scratchDir();
  vi.stubEnv('XDG_CACHE_HOME', dir.path);
  vi.stubEnv('NATS_SERVER', '');
  vi.stubEnv('PATH', `${dir.path}/bin:${process.env['PATH']}`);
  const place = `${toolFolder('/nowhere')}/${toolName('nats-server', '2.12')}`;
  await mkdir(place, { recursive: true });
  await mkdir(`${dir.path}/bin`);
  await fakeProgram(`${dir.path}/bin/nats-server`, 'echo nats-server: v2.99.0');
  const cached = await fakeProgram(`${place}/nats-server`, 'echo nats-server: v2.99.0');
  const ensured = async () => (await ensurePrograms(['nats-server'], () => {}))['nats-server'];
  expect(await ensured()).toBe(cached);
  await fakeProgram(cached, 'exit 1');
  expect(await ensured()).not.toBe(cached);
});

test('programs are installed into the cache folder, or into the checkout where that cannot be written', async () => {
  await using dir = await scratchDir();
  vi.stubEnv('XDG_CACHE_HOME', `${dir.path}/cache`);
  expect(toolFolder(dir.path)).toBe(`${dir.path}/cache/browser-session-service`);
  await writeFile(`${dir.path}/file`, 'a file in the place of the folder');
  vi.stubEnv('XDG_CACHE_HOME', `${dir.path}/file`);
  expect(toolFolder(dir.path)).toBe(`${dir.path}/.tools`);
  vi.stubEnv('XDG_CACHE_HOME', 'relative');
  vi.stubEnv('HOME', `${dir.path}/home`);
  expect(toolFolder(dir.path)).toBe(`${dir.path}/home/.cache/browser-session-service`);
});

test.each([
  ['a release', 'nats-server.tar.gz', releaseSource, 'tar.gz'],
  ['a Debian package', 'nats-server.deb', debianSource, 'deb'],
] as const)(
  '%s of nats-server is unpacked only if it is the pinned one',
  async (_, name, source, ending) => {
    await using dir = await scratchDir();
    await using files = await fileServer(dir.path);
    const unpack = async () => {
      await mkdir(`${dir.path}/unpacked`, { recursive: true });
      return await source(files.url).unpack(`${dir.path}/unpacked`);
    };
    // The host gives the checksum of what it gives, which proves nothing.
    await expect(unpack()).rejects.toThrow('the checksum of http');
    const [asked] = files.asked();
    expect(asked).toMatch(new RegExp(`nats-server.*\\.${ending}$`));
    expect(files.asked().join()).not.toContain('SHA256SUMS');

    using pinned = pin(name, await files.sumOf(asked ?? ''));
    expect(pinned.before).not.toBe(pinned.sha256);
    expect(await readFile(await unpack(), 'utf8')).toContain('the release');
    files.corrupt();
    await expect(unpack()).rejects.toThrow('the checksum of http');
  },
);

test('what is fetched by its address has a version and a checksum for each platform', () => {
  const entries = Object.values(PINNED).flatMap((platforms) => Object.values(platforms));
  expect(entries.length).toBeGreaterThan(4);
  for (const { version, sha256 } of entries) {
    expect(version).toMatch(/^\d+\.\d+\.\d+(?:-\d+)?$/);
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  }
  expect(
    Object.values(PINNED).every((platforms) => 'any' in platforms || 'linux-x64' in platforms),
  ).toBe(true);
  expect(() => verify(Buffer.from('other'), entries[0]?.sha256 ?? '', 'it')).toThrow('has to be');
});

async function fakeProgram(path: string, script: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Puts a checksum for this platform in the place of the one in the table. */
function pin(name: PinnedName, sha256: string) {
  const platform = `${process.platform}-${process.arch}`;
  const before = PINNED[name][platform];
  if (before === undefined) throw new Error(`${name} is pinned for no ${platform}`);
  PINNED[name][platform] = { ...before, sha256 };
  return {
    before: before.sha256,
    sha256,
    [Symbol.dispose]() {
      PINNED[name][platform] = before;
    },
  };
}

/** Serves what is asked for as an archive or a package of nats-server, and its checksum. */
async function fileServer(folder: string) {
  let isCorrupt = false;
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    void answer(request.url ?? '').then((body) => response.end(body));
  });
  const answer = async (url: string): Promise<Buffer> => {
    if (url.endsWith('SHA256SUMS')) return Buffer.from('');
    const body = await made(url);
    return isCorrupt ? Buffer.concat([body, Buffer.from('x')]) : body;
  };
  const files = new Map<string, Promise<Buffer>>();
  const made = async (url: string): Promise<Buffer> => {
    const file = url.split('/').at(-1) ?? '';
    const body = files.get(file) ?? (file.endsWith('.deb') ? deb(file) : archive(file));
    files.set(file, body);
    return await body;
  };
  const archive = async (file: string): Promise<Buffer> => {
    const name = file.replace('.tar.gz', '');
    await mkdir(`${folder}/${name}`, { recursive: true });
    await fakeProgram(`${folder}/${name}/nats-server`, 'echo the release');
    return await run(['tar', '-czf', file, name], file);
  };
  const deb = async (file: string): Promise<Buffer> => {
    await mkdir(`${folder}/deb/DEBIAN`, { recursive: true });
    await mkdir(`${folder}/deb/usr/sbin`, { recursive: true });
    const fields = [
      'Package: nats-server',
      'Version: 1',
      'Architecture: all',
      'Maintainer: a test',
    ];
    await writeFile(`${folder}/deb/DEBIAN/control`, `${fields.join('\n')}\nDescription: one\n`);
    await fakeProgram(`${folder}/deb/usr/sbin/nats-server`, 'echo the release');
    return await run(['dpkg-deb', '--build', 'deb', file], file);
  };
  const run = async (command: string[], file: string): Promise<Buffer> => {
    const outcome = await runCommand(command, { timeoutMs: 60_000, cwd: folder });
    expect(outcome).toMatchObject({ code: 0 });
    return await readFile(`${folder}/${file}`);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    sumOf: async (url: string) =>
      createHash('sha256')
        .update(await made(url))
        .digest('hex'),
    corrupt: () => {
      isCorrupt = true;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
