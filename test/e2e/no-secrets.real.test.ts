import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { openStream } from '#test/support/clients/sse-client.ts';
import { asKey, bss } from '#test/support/clients/command-line.ts';
import { findSecrets } from '#test/support/service/secret-search.ts';
import {
  startWithSecrets,
  type SessionWithSecrets,
} from '#test/support/service/session-with-secrets.ts';
import {
  readFiles,
  readRedis,
  readStreams,
  type LeakSurface,
} from '#test/support/service/leak-surfaces.ts';

/**
 * No secret of the service leaks: each test reads some surfaces (texts that people, programs or
 * backups can read) and searches them for every secret, in plain text and encoded.
 * The canary, a text in the session's description, shows that the search sees a surface: it must be
 * found in each that contains descriptions.
 */

/** Files that are meant to contain secrets; readable only by their owner. */
const SECRET_FILES = ['master-key', 'dev-api-key', 'operator-token', 'runtime.json'];

let used: SessionWithSecrets;
beforeAll(async () => {
  used = await startWithSecrets();
});
afterAll(() => used?.service[Symbol.asyncDispose]());

describe('no secret is', () => {
  it('in an event, a stream or a view', async () => {
    const { nats_url, redis_url } = used.service.runtime;
    const surfaces = [...(await readStreams(nats_url)), ...(await readRedis(redis_url))];
    for (const name of ['stream EVENTS', 'Redis'])
      expect(textOf(surfaces, name)).toContain(used.sessionId);
    expect(surfacesWithCanary(surfaces)).toEqual(['Redis', 'stream EVENTS', 'stream PUBLIC']);
    expect(leaksIn(surfaces)).toEqual([]);
  });

  it('in an answer to another client, an event stream, a document or a metric', async () => {
    const session = `/api/sessions/${used.sessionId}`;
    const surfaces = [
      ...used.refusals,
      ...(await readEventStreams(['/api/events', `${session}/events`])),
      ...(await readPublic([
        '/metrics',
        '/docs',
        '/docs/events',
        '/api/openapi.json',
        '/api/health',
      ])),
      ...(await readAsAdmin(['/api/sessions', session, '/api/status', '/api/keys'])),
      ...(await readAsAdmin(['/api/usage', '/api/organization', '/api/asyncapi.json'])),
    ];
    expect(surfacesWithCanary(surfaces)).toEqual(
      expect.arrayContaining([
        '/api/events',
        `${session}/events`,
        session,
        'refusal of POST /api/sessions',
      ]),
    );
    expect(leaksIn(surfaces)).toEqual([]);
  });

  it('in the output of a command, or in an export', async () => {
    const { sessionId, organization, service } = used;
    const file = join(service.dataDir, 'export.jsonl');
    const surfaces = await runCommands([
      ['keys', 'list', '--org', organization],
      ['credits', 'statement', '--org', organization, '--json'],
      ['audit', 'export', '--out', file],
      ['session', 'history', sessionId],
      ['session', 'history', sessionId, '--json'],
      ['why', sessionId],
      ['servers', 'list', '--json'],
      ['projections', 'verify'],
      ['events', 'tail', '--from', 'start', '--limit', '8', '--json'],
      ['events', 'show', '1'],
      ['sessions', 'no-such-command'],
    ]);
    for (const { name, text } of surfaces) expect(text.length, name).toBeGreaterThan(20);
    surfaces.push({ name: 'the export', text: await readFile(file, 'utf8') });
    expect(surfacesWithCanary(surfaces)).toEqual(
      expect.arrayContaining(['the export', `bss session history ${sessionId} --json`]),
    );
    expect(leaksIn(surfaces)).toEqual([]);
  });

  it('in a log line, on the terminal, or in a file that is not meant for secrets', async () => {
    const lines = used.service.output().split('\n');
    const logged = lines.filter((line) => line.startsWith('{'));
    const printed = lines.filter((line) => !line.startsWith('{'));
    expect(logged.length).toBeGreaterThan(3);
    const canaryFile = join(used.service.dataDir, 'planted');
    await writeFile(
      canaryFile,
      Buffer.concat([Buffer.from([0, 255, 10]), Buffer.from(used.canary)]),
    );
    const files = await readFiles(used.service.dataDir, SECRET_FILES);
    await rm(canaryFile);
    const surfaces = [
      { name: 'log', text: logged.join('\n') },
      // The welcome text prints the development key; it must be printed nowhere else.
      { name: 'terminal', text: printed.join('\n').replaceAll(DEV_KEY, '') },
      ...files,
    ];
    expect(surfaces.map(({ text }) => text).join('\n')).toContain(used.sessionId);
    expect(surfacesWithCanary(surfaces)).toContain('/planted');
    expect(leaksIn(surfaces)).toEqual([]);
  });

  it('in a command line or an environment of a child process', () => {
    const { commandLines, environments } = used.processes;
    const commands = commandLines.map(({ text }) => text).join('\n');
    for (const program of ['main.js', 'nats-server', 'redis-server', 'chrom', 'Xtigervnc'])
      expect(commands).toContain(program);
    expect(environments.map(({ text }) => text).join('\n')).toContain('PATH=');
    expect(leaksIn([...commandLines, ...environments])).toEqual([]);
  });
});

it('the secrets searched for are the real ones: the owner of the session was answered them', () => {
  for (const name of ['VNC password', 'CDP ticket', 'VNC ticket'])
    expect(used.ownAnswers, name).toContain(secretOf(name));
  for (const [name, value] of used.secrets) expect(value.length, name).toBeGreaterThanOrEqual(8);
  expect(new Set(used.secrets.values()).size).toBe(used.secrets.size);
});

/** `<secret> in <surface> (<form>)` for each secret that is found. */
function leaksIn(surfaces: readonly LeakSurface[]): string[] {
  return findSecrets(used.secrets, surfaces);
}

/** The names of the surfaces in which the canary is found, sorted. */
function surfacesWithCanary(surfaces: readonly LeakSurface[]): string[] {
  const canary = new Map([['canary', used.canary]]);
  const found = surfaces.filter((surface) => findSecrets(canary, [surface]).length > 0);
  return [...new Set(found.map(({ name }) => name))].toSorted();
}

function secretOf(name: string): string {
  const value = used.secrets.get(name);
  if (value === undefined) throw new Error(`there is no ${name}`);
  return value;
}

function textOf(surfaces: readonly LeakSurface[], name: string): string | undefined {
  return surfaces.find((surface) => surface.name === name)?.text;
}

async function readEventStreams(paths: readonly string[]): Promise<LeakSurface[]> {
  const key = secretOf('admin key');
  const surfaces: LeakSurface[] = [];
  for (const path of paths) {
    using stream = await openStream(used.service.apiUrl + path, { key, lastId: '0' });
    const hasAll = () => stream.events().some(({ type }) => type === 'session.stopped');
    await eventually(hasAll, 'the session’s end');
    surfaces.push({ name: path, text: JSON.stringify(stream.blocks) });
  }
  return surfaces;
}

async function readPublic(paths: readonly string[]): Promise<LeakSurface[]> {
  const read = async (path: string) => (await fetch(used.service.apiUrl + path)).text();
  return Promise.all(paths.map(async (path) => ({ name: path, text: await read(path) })));
}

async function readAsAdmin(paths: readonly string[]): Promise<LeakSurface[]> {
  const key = secretOf('admin key');
  const read = async (path: string) => (await asKey(used.service, key, 'GET', path)).body;
  return Promise.all(
    paths.map(async (path) => ({ name: path, text: JSON.stringify(await read(path)) })),
  );
}

/** Runs the commands, two at a time. */
async function runCommands(commands: string[][]): Promise<LeakSurface[]> {
  const surfaces: LeakSurface[] = [];
  async function runNext(): Promise<void> {
    for (let command = commands.shift(); command !== undefined; command = commands.shift()) {
      const { stdout, stderr } = await bss(used.service, ...command);
      surfaces.push({ name: `bss ${command.join(' ')}`, text: stdout + stderr });
    }
  }
  await Promise.all([runNext(), runNext()]);
  return surfaces;
}
