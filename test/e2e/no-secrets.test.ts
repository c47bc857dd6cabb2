import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { openStream } from '#test/support/clients/sse-client.ts';
import { connectApi } from '#test/support/clients/api-client.ts';
import { asKey, bss } from '#test/support/clients/command-line.ts';
import { startRealService, type RealService } from '#test/support/service/real-session.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { findSecrets, formsOf } from '#test/support/service/secret-search.ts';
import {
  readFiles,
  readProcesses,
  readRedis,
  readStreams,
  type Surface,
} from '#test/support/service/leak-surfaces.ts';

const MASTER_KEY = 'a-master-key-that-must-not-be-found-anywhere';
const JWT_SECRET = 'a-jwt-secret-that-must-not-be-found-anywhere';
const ORGANIZATION = 'acme';
const WRONG_KEY = 'bss_dev_a-key-that-opens-nothing-and-is-nobodys';
/** What is meant to hold secrets: readable for their owner alone. */
const SECRET_FILES = ['master-key', 'dev-api-key', 'runtime.json'];
/**
 * Stands for a secret that somebody lets slip: given where the service keeps what it is given, it
 * has to be found there, or the search sees nothing.
 */
const PLANTED = `planted "secret" / with + signs = ${randomUUID()}`;
const planted = new Map([['what was planted', PLANTED]]);

let service: RealService;
let sessionId: string;
/** What was made or given, by name; and where each is meant to be seen. */
const secrets = new Map<string, string>();
const answers: string[] = [];
const refusals: Surface[] = [];
/** Its own and those it has started, its browser's among them, while the session lived. */
let processes: ReturnType<typeof readProcesses>;

beforeAll(async () => {
  service = await startRealService({
    MASTER_KEY,
    LOG_LEVEL: 'trace',
    ...{ JWT_SECRET, JWT_ISSUER: 'issuer', JWT_AUDIENCE: 'audience' },
  });
  await using opened = await openLog(service);
  const api = await connectApi(service.apiUrl);
  await opened.register(ORGANIZATION, 'pro', 1_000);
  for (const role of ['member', 'viewer', 'admin'] as const)
    secrets.set(`${role} key`, await opened.issueKey(ORGANIZATION, role, api));
  const [member, viewer] = [secretOf('member key'), secretOf('viewer key')];
  sessionId = await live(member);
  await refuse(member, viewer);
  await opened.revokeKey(ORGANIZATION, viewer);
});
afterAll(() => service?.[Symbol.asyncDispose]());

/** A session that is used in every way there is, and what it is used by. */
async function live(key: string): Promise<string> {
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await asKey(service, key, method, path, body);
    answers.push(JSON.stringify(answer.body));
    return answer.body;
  };
  const { id } = await ask('POST', '/api/sessions', {
    duration: '30m',
    labels: { team: 'web' },
    description: PLANTED,
  });
  const path = `/api/sessions/${id}`;
  await ask('GET', path);
  await ask('POST', `${path}/extend`, { duration: '10m' });
  const access = await ask('GET', `${path}/access`);
  secrets.set('VNC password', access.vnc_password);
  secrets.set('CDP ticket', access.cdp_url.split('/').at(-1));
  secrets.set('VNC ticket', access.vnc_url.split('/').at(-2));
  const socket = new WebSocket(access.cdp_url);
  await once(socket, 'open');
  const closed = once(socket, 'close');
  processes = readProcesses(service.pid);
  await ask('DELETE', path);
  await closed;
  return id as string;
}

/** Everything that is refused says why, and not what it was refused for. */
async function refuse(member: string, viewer: string): Promise<void> {
  secrets.set('master key', MASTER_KEY);
  secrets.set('JWT secret', JWT_SECRET);
  secrets.set('wrong key', WRONG_KEY);
  secrets.set('development key', DEV_KEY);
  const path = `/api/sessions/${sessionId}`;
  const refused: [key: string, method: string, path: string, body?: unknown][] = [
    [WRONG_KEY, 'GET', '/api/sessions'],
    [WRONG_KEY, 'GET', '/api/events'],
    [`${JSON.stringify({ alg: 'none' })}.${WRONG_KEY}.`, 'GET', '/api/status'],
    [viewer, 'POST', '/api/sessions', {}],
    [viewer, 'GET', `${path}/access`],
    [member, 'POST', '/api/sessions', { duration: PLANTED }],
    [member, 'GET', `/api/${encodeURIComponent(PLANTED)}`],
    [member, 'POST', '/api/sessions', { colour: 'red' }],
    [member, 'GET', `${path}/access`],
    [member, 'POST', `${path}/extend`, { duration: '1h' }],
    [member, 'GET', '/api/sessions/ses_that_never_was/events'],
    [DEV_KEY, 'GET', path],
  ];
  for (const [key, method, at, body] of refused) {
    const { status, body: answer } = await asKey(service, key, method, at, body);
    expect(status, `${method} ${at}`).toBeGreaterThanOrEqual(400);
    refusals.push({ name: `refusal of ${method} ${at}`, text: JSON.stringify(answer) });
  }
}

describe('the search', () => {
  it('finds each secret in each form, wherever in a text it stands', () => {
    for (const [name, value] of secrets) {
      for (const [form, [first = '', last]] of formsOf(value))
        for (const text of [first, last ?? first]) {
          const surfaces = [{ name: 'a surface', text: `before${text}after` }];
          expect(findSecrets(secrets, surfaces), text).toContain(`${name} in a surface (${form})`);
        }
      for (const before of ['', 'a', 'ab', 'abc']) {
        const text = Buffer.from(`${before}${value}!`).toString('base64');
        const found = findSecrets(secrets, [{ name: 'a header', text }]);
        expect(found, text).toContain(`${name} in a header (base64)`);
      }
    }
    const nothing = [{ name: 'a surface', text: 'bss_acme_of-somebody-else' }];
    expect(findSecrets(secrets, nothing)).toEqual([]);
  });

  it('sees a file, and what is in it', async () => {
    const file = join(service.dataDir, 'planted');
    await writeFile(file, Buffer.concat([Buffer.from([0, 255, 10]), Buffer.from(PLANTED)]));
    const surfaces = await readFiles(service.dataDir, SECRET_FILES);
    await rm(file);
    expect(findSecrets(planted, surfaces)).toContain('what was planted in /planted (plain)');
  });
});

describe('a secret', () => {
  it('is seen where it is meant to be, so this test knows what it looks for', async () => {
    const seen = answers.join('\n');
    for (const name of ['VNC password', 'CDP ticket', 'VNC ticket'])
      expect(seen.includes(secretOf(name)), name).toBe(true);
    for (const [name, value] of secrets) expect(value.length, name).toBeGreaterThanOrEqual(8);
    expect(new Set(secrets.values()).size).toBe(secrets.size);
  });

  it('is in no event, no stream and no view', async () => {
    const { nats_url, redis_url } = service.runtime;
    const surfaces = [...(await readStreams(nats_url)), ...(await readRedis(redis_url))];
    const events = surfaces.find(({ name }) => name === 'stream EVENTS')?.text ?? '';
    expect(events).toContain(sessionId);
    expect(surfaces.find(({ name }) => name === 'Redis')?.text).toContain(sessionId);
    expect(namesOf(surfaces)).toEqual(expect.arrayContaining(['stream EVENTS', 'stream PUBLIC']));
    expect(seeing(surfaces)).toEqual(['Redis', 'stream EVENTS', 'stream PUBLIC']);
    expect(found(surfaces)).toEqual([]);
  });

  it('is in nothing that a client hears or reads', async () => {
    const key = secretOf('admin key');
    const surfaces = [...refusals];
    for (const path of ['/api/events', `/api/sessions/${sessionId}/events`]) {
      using stream = await openStream(service.apiUrl + path, { key, lastId: '0' });
      const hasAll = () => stream.events().some(({ type }) => type === 'session.stopped');
      await eventually(hasAll, 'the session’s end');
      surfaces.push({ name: path, text: JSON.stringify(stream.blocks) });
    }
    for (const path of ['/metrics', '/docs', '/docs/events', '/api/openapi.json', '/api/health']) {
      const response = await fetch(service.apiUrl + path);
      surfaces.push({ name: path, text: await response.text() });
    }
    const paths = ['/api/sessions', `/api/sessions/${sessionId}`, '/api/status', '/api/keys'];
    for (const path of [...paths, '/api/usage', '/api/organization', '/api/asyncapi.json']) {
      const { body } = await asKey(service, key, 'GET', path);
      surfaces.push({ name: path, text: JSON.stringify(body) });
    }
    expect(seeing(surfaces)).toEqual(
      expect.arrayContaining([
        '/api/events',
        `/api/sessions/${sessionId}/events`,
        `/api/sessions/${sessionId}`,
        'refusal of POST /api/sessions',
      ]),
    );
    expect(found(surfaces)).toEqual([]);
  });

  it('is in nothing that the command line prints or exports', async () => {
    const file = join(service.dataDir, 'export.jsonl');
    const org = ['--org', ORGANIZATION];
    const commands = [
      ['keys', 'list', ...org],
      ['credits', 'statement', ...org, '--json'],
      ['audit', 'export', '--out', file],
      ['session', 'history', sessionId],
      ['session', 'history', sessionId, '--json'],
      ['why', sessionId],
      ['servers', 'list', '--json'],
      ['projections', 'verify'],
      ['events', 'tail', '--from', 'start', '--limit', '8', '--json'],
      ['events', 'show', '1'],
      ['sessions', 'no-such-command'],
    ];
    const surfaces: Surface[] = [];
    async function runNext(): Promise<void> {
      for (let command = commands.shift(); command !== undefined; command = commands.shift()) {
        const { stdout, stderr } = await bss(service, ...command);
        surfaces.push({ name: `bss ${command.join(' ')}`, text: stdout + stderr });
      }
    }
    await Promise.all([runNext(), runNext()]);
    for (const { name, text } of surfaces) expect(text.length, name).toBeGreaterThan(20);
    surfaces.push({ name: 'the export', text: await readFile(file, 'utf8') });
    expect(seeing(surfaces)).toEqual(
      expect.arrayContaining(['the export', `bss session history ${sessionId} --json`]),
    );
    expect(found(surfaces)).toEqual([]);
  });

  it('is in no line of the service’s log, and in no file but its own', async () => {
    const lines = service.output().split('\n');
    const logged = lines.filter((line) => line.startsWith('{'));
    expect(logged.length).toBeGreaterThan(3);
    // The embedded start tells whoever started it the development key, once.
    const told = lines.filter((line) => !line.startsWith('{')).join('\n');
    const surfaces = [
      { name: 'log', text: logged.join('\n') },
      { name: 'terminal', text: told.replaceAll(DEV_KEY, '') },
      ...(await readFiles(service.dataDir, SECRET_FILES)),
    ];
    expect(surfaces.map(({ text }) => text).join('\n')).toContain(sessionId);
    expect(found(surfaces)).toEqual([]);
  });

  it('is in no command line, and in no environment that the service has given', () => {
    const all = processes.commandLines.map(({ text }) => text).join('\n');
    for (const program of ['main.ts', 'nats-server', 'redis-server', 'chrom', 'Xtigervnc'])
      expect(all).toContain(program);
    expect(processes.environments.map(({ text }) => text).join('\n')).toContain('PATH=');
    expect(found([...processes.commandLines, ...processes.environments])).toEqual([]);
  });
});

function secretOf(name: string): string {
  const value = secrets.get(name);
  if (value === undefined) throw new Error(`there is no ${name}`);
  return value;
}

/** `<secret> in <surface> (<form>)` for each that is there. */
function found(surfaces: readonly Surface[]): string[] {
  return findSecrets(secrets, surfaces);
}

/** Surfaces in which what was planted is found. */
function seeing(surfaces: readonly Surface[]): string[] {
  const seen = surfaces.filter((surface) => findSecrets(planted, [surface]).length > 0);
  return [...new Set(namesOf(seen))].toSorted();
}

function namesOf(surfaces: readonly Surface[]): string[] {
  return surfaces.map(({ name }) => name);
}
