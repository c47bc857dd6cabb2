import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { releaseSource } from '#src/embedded/fetch-nats-server.ts';
import { ensurePrograms, MissingProgram } from '#src/embedded/programs.ts';
import { runCommand } from '#src/embedded/run-command.ts';
import { toolFolder, toolName } from '#src/embedded/tool-folder.mjs';
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
  const lines: string[] = [];
  const found = ensurePrograms(['Xtigervnc'], (line) => lines.push(line));
  await expect(found).rejects.toThrow(MissingProgram);
  await expect(found).rejects.toThrow('Xtigervnc is missing and could not be installed');
  await expect(found).rejects.toThrow(
    'apt-get install --no-install-recommends tigervnc-standalone-server',
  );
  expect(lines).toEqual(['Installing Xtigervnc…']);
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

test('a release of nats-server is unpacked only if its checksum matches', async () => {
  await using dir = await scratchDir();
  await mkdir(`${dir.path}/unpacked`);
  await using releases = await releaseServer(dir.path);
  const source = releaseSource(releases.url);

  const binary = await source.unpack(`${dir.path}/unpacked`);
  expect(await readFile(binary, 'utf8')).toContain('the release');

  releases.corrupt();
  await expect(source.unpack(`${dir.path}/unpacked`)).rejects.toThrow('checksum');
});

async function fakeProgram(path: string, script: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Serves an archive for any requested platform, and its checksum until it is corrupted. */
async function releaseServer(folder: string) {
  let isCorrupt = false;
  const archives = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    void answer(request.url ?? '').then((body) => response.end(body));
  });
  const answer = async (url: string): Promise<Buffer | string> => {
    const file = url.split('/').at(-1) ?? '';
    if (file !== 'SHA256SUMS') return await archiveNamed(file.replace('.tar.gz', ''));
    await expect.poll(() => archives.size).toBe(1);
    return [...archives].map(([name, body]) => `${sumOf(body)}  ${name}.tar.gz\n`).join('');
  };
  const archiveNamed = async (name: string): Promise<Buffer> => {
    await mkdir(`${folder}/${name}`, { recursive: true });
    await fakeProgram(`${folder}/${name}/nats-server`, 'echo the release');
    await runCommand(['tar', '-czf', 'made.tar.gz', name], { timeoutMs: 10_000, cwd: folder });
    const body = await readFile(`${folder}/made.tar.gz`);
    archives.set(name, body);
    return isCorrupt ? Buffer.concat([body, Buffer.from('x')]) : body;
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    corrupt: () => {
      isCorrupt = true;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function sumOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}
