import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, symlink, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { scratchDir } from '#test/support/scratch.ts';

const PROGRAMS = new URL('../../../src/start/embedded/install/programs.ts', import.meta.url)
  .pathname;
const PACKAGE = 'tigervnc-standalone-server';

beforeEach(() => {
  for (const name of ['CI', 'BSS_INSTALL', 'XTIGERVNC']) vi.stubEnv(name, '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('as an ordinary user without a terminal', () => {
  beforeEach(() => void vi.spyOn(process, 'getuid').mockReturnValue(1000));

  it('nothing is installed, and the message says what agrees to it', async () => {
    await using machine = await fakeMachine();
    const found = ensureXvnc();
    await expect(found.path).rejects.toThrow('BSS_INSTALL=yes agrees to it');
    await expect(found.path).rejects.toThrow(`Install it by hand: sudo apt-get install`);
    expect(await machine.rootCalls()).toEqual([]);
  });

  it('what, from where, what for and the command by hand are said before', async () => {
    await using machine = await fakeMachine();
    const found = ensureXvnc();
    await expect(found.path).rejects.toThrow();
    const said = found.said.join('\n');
    expect(said).toContain("with root's rights, from http://archive.example/debian:");
    expect(said).toContain(`${PACKAGE}: the screens of browsers`);
    expect(said).toContain(`By hand: sudo apt-get install --no-install-recommends ${PACKAGE}`);
    expect(await machine.rootCalls()).toEqual([]);
  });

  it.each([
    ['BSS_INSTALL', 'yes'],
    ['CI', 'true'],
  ])('%s=%s agrees', async (name, value) => {
    await using machine = await fakeMachine();
    vi.stubEnv(name, value);
    const found = ensureXvnc();
    expect(await found.path).toBe(machine.xvnc);
    expect((await machine.rootCalls()).join()).toContain(`-n env DEBIAN_FRONTEND`);
    expect(found.said.findIndex((line) => line.startsWith('By hand'))).toBeLessThan(
      found.said.findIndex((line) => line.startsWith('Installing')),
    );
  });

  it('BSS_INSTALL=no declines, on CI too', async () => {
    await using machine = await fakeMachine();
    vi.stubEnv('BSS_INSTALL', 'no');
    vi.stubEnv('CI', 'true');
    await expect(ensureXvnc().path).rejects.toThrow('BSS_INSTALL is no');
    expect(await machine.rootCalls()).toEqual([]);
  });
});

it('root without a terminal, as in a container, is not asked', async () => {
  await using machine = await fakeMachine();
  vi.spyOn(process, 'getuid').mockReturnValue(0);
  expect(await ensureXvnc().path).toBe(machine.xvnc);
  expect(await machine.rootCalls()).toEqual([]);
});

describe('on a terminal', () => {
  it.each([
    ['Enter', '\n', true],
    ['y', 'y\n', true],
    ['n', 'n\n', false],
    ['the end of the input', '\u0004', false],
  ])('%s as the answer', async (_, answer, isInstalled) => {
    await using machine = await fakeMachine();
    const said = await onTerminal(machine.path, answer);
    expect(said).toContain('Install it? [Y/n]');
    expect(said).toContain(isInstalled ? `found ${machine.xvnc}` : 'it was declined');
    expect((await machine.calls()).some((call) => call.includes(` install `))).toBe(isInstalled);
  });
});

function ensureXvnc() {
  const said: string[] = [];
  const path = ensurePrograms(['Xtigervnc'], (line) => said.push(line)).then(
    (paths) => paths.Xtigervnc,
  );
  path.catch(() => undefined);
  return { said, path };
}

/** A PATH with an apt-get, which installs one program there, and a sudo; both note their calls. */
async function fakeMachine() {
  const dir = await scratchDir();
  const { path } = dir;
  const log = `${path}/calls`;
  await writeFile(log, '');
  const script = async (name: string, lines: string): Promise<void> => {
    await writeFile(`${path}/${name}`, `#!/bin/sh\necho "${name} $*" >>${log}\n${lines}\n`);
    await chmod(`${path}/${name}`, 0o755);
  };
  const xvnc = `${path}/Xtigervnc`;
  await script(
    'apt-get',
    `case "$*" in
  *indextargets*) echo http://archive.example/debian/ ;;
  *' install '*) printf '#!/bin/sh\\n' >${xvnc}; /bin/chmod 755 ${xvnc} ;;
esac`,
  );
  await script('sudo', 'shift; [ "$1" = true ] || exec "$@"');
  await symlink('/usr/bin/env', `${path}/env`);
  vi.stubEnv('PATH', path);
  vi.stubEnv('XDG_CACHE_HOME', `${path}/cache`);
  const calls = async () => (await readFile(log, 'utf8')).split('\n').filter(Boolean);
  return {
    path,
    xvnc,
    calls,
    rootCalls: async () => (await calls()).filter((call) => call.startsWith('sudo')),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

/** What a program that ensures Xtigervnc says on a terminal of its own, where this is typed. */
async function onTerminal(path: string, typed: string): Promise<string> {
  const program = `${path}/program.ts`;
  await writeFile(
    program,
    `import { ensurePrograms } from '${PROGRAMS}';
     await ensurePrograms(['Xtigervnc'], console.log).then(
       ({ Xtigervnc }) => console.log('found ' + Xtigervnc),
       (error) => console.log(error.message),
     );`,
  );
  const command = `'${process.execPath}' '${program}'`;
  const terminal = spawn('/usr/bin/script', ['-qec', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  terminal.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
    // Once: what is typed early is lost on some terminals.
    if (said.includes('[Y/n]') && !terminal.stdin.writableEnded) terminal.stdin.end(typed);
  });
  await once(terminal, 'close');
  return said;
}
