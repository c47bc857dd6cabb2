import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { bss, json } from '#test/support/clients/command-line.ts';
import { startSecondApi, MASTER_KEY } from '#test/support/service/two-processes.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

/** What happened, as an organization reads it over REST, and as its operator does by bss. */

let service: RunningService;
let log: ServiceLog;
/** Keys of acme's owner and viewer, and of another organization's owner. */
let keys: { owner: string; viewer: string; other: string };
let api: ApiClient;
let id: string;

beforeAll(async () => {
  service = await startService({ MASTER_KEY, POOL_MAX: '20', POOL_MIN_IDLE: '3' });
  const anybody = await connectApi(service.apiUrl);
  log = await openLog(service);
  await log.register('acme', 'pro', 10_000);
  await log.register('umbrella', 'pro', 10_000);
  keys = {
    owner: await log.issueKey('acme', 'owner', anybody),
    viewer: await log.issueKey('acme', 'viewer', anybody),
    other: await log.issueKey('umbrella', 'owner', anybody),
  };
  api = anybody.as(keys.owner);
  id = (await api.create({ session_name: 'told', labels: { team: 'web' } })).body.id;
  await api.extend(id, '10m');
  await anybody.as(keys.other).create({});
  await api.stop(id);
  const status = async () => (await api.get(`/api/sessions/${id}`)).body.status;
  await eventually(async () => (await status()) === 'stopped', 'the session has stopped');
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

describe('a session', () => {
  it('has the history that bss has, without what is internal', async () => {
    const { body } = await api.get(`/api/sessions/${id}/history`);
    const printed = (await json(service, 'session', 'history', id)) as Record<string, unknown>[];
    const told = ({ sequence, type, time, actor }: Record<string, unknown>) => {
      return { sequence, type, time, actor };
    };
    expect(body.events.map(told)).toEqual(printed.map(told));
    const causes = body.events.map(({ because_of: cause }: { because_of: object | null }) => cause);
    expect(causes).toMatchObject(printed.map(({ causedBy }) => causedBy));
    expect(JSON.stringify(printed)).toContain('"serverIp"');
    expect(JSON.stringify(body)).not.toMatch(/serverIp|"cdp":|"vnc":|fingerprint|keyedExtensions/);
  });

  it('has the reason that bss prints', async () => {
    const { body } = await api.get(`/api/sessions/${id}/why`);
    type Told = { words: string; sequence?: number };
    const printed = (await json(service, 'why', id)) as Record<'chain' | 'timeline', Told[]> & {
      summary: string;
    };
    const told = ({ words, sequence }: Told) => [sequence ?? null, words];
    const shown = ({ sequence, sentence }: { sequence: number | null; sentence: string }) => [
      sequence,
      sentence,
    ];
    expect(body.summary).toBe(printed.summary);
    expect(body.chain.map(shown)).toEqual(printed.chain.map(told));
    expect(body.related.map(shown)).toEqual(printed.timeline.map(told));
  });

  it('is read by the client', async () => {
    const { sessions } = createClient({ url: service.apiUrl, apiKey: keys.viewer });
    const first = await sessions.history(id, { limit: 2 });
    expect(first.events.map(({ type }) => type)).toContain('session.requested');
    const rest = await sessions.history(id, { after: first.next ?? 0, limit: 500 });
    expect([rest.events.at(-1)?.type, rest.next]).toEqual(['session.stopped', null]);
    expect((await sessions.why(id)).chain[0]?.sentence).toMatch(/^it stopped/);
  });

  it('is unknown to another organization', async () => {
    for (const what of ['history', 'why']) {
      const path = `/api/sessions/${id}/${what}`;
      expect(errorOf(await api.as(keys.other).get(path))).toBe('404 SESSION_NOT_FOUND');
      expect(errorOf(await api.as(null).get(path))).toBe('401 UNAUTHORIZED');
    }
  });
});

describe('the events', () => {
  it('come in pages, each once, and none of another organization', async () => {
    const seen: { sequence: number; type: string }[] = [];
    let after = 0;
    for (let isOver = false; !isOver;) {
      const { body } = await api.get(`/api/events?format=json&limit=3&after=${after}`);
      isOver = body.events.length === 0 && body.next === after;
      seen.push(...body.events);
      after = body.next;
    }
    const stored = [];
    const onUnreadable = ({ reason }: { reason: string }) => expect.unreachable(reason);
    const subjects = ['evt.acme.>'];
    for await (const batch of log.eventStore.read({ subjects, onUnreadable }))
      stored.push(...batch);
    const told = ({ sequence, type }: { sequence: number; type: string }) => ({ sequence, type });
    expect(seen.map(told)).toEqual(stored.map(told));
  });

  it('are filtered, and asked for by Accept', async () => {
    const path = '/api/events?label=team%3Dweb&type=session.extended';
    const { body } = await api.get(path, { headers: { accept: 'application/json' } });
    expect(body.events).toMatchObject([{ type: 'session.extended', subject: id }]);
    expect(body.next).toBeGreaterThan(body.events[0].sequence);
  });
});

describe('an audit', () => {
  const download = (url: string, key: string, headers = {}) =>
    fetch(`${url}/api/audit/export`, { headers: { authorization: `Bearer ${key}`, ...headers } });
  const save = async (name: string, bytes: Buffer) => {
    const file = join(service.dataDir, name);
    await writeFile(file, bytes);
    return file;
  };

  it('is verified by bss, alone and against the log; a change is found', async () => {
    const answer = await download(service.apiUrl, keys.owner, { 'accept-encoding': 'identity' });
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, null]);
    const file = await save('audit.ndjson', Buffer.from(await answer.arrayBuffer()));
    const alone = await bss(service, 'audit', 'verify', file);
    expect([alone.code, alone.stdout]).toEqual([
      0,
      expect.stringMatching(/^WHOLE: \d+ records of/),
    ]);
    await json(service, 'audit', 'verify', file, '--against-log');
    const { fingerprint } = (await json(service, 'audit', 'key')) as { fingerprint: string };
    expect(alone.stdout).toContain(fingerprint);
    const text = await readFile(file, 'utf8');
    expect(text).not.toMatch(/serverIp|evt\.umbrella|"hash":"(?![0-9a-f]{64}","record")/);
    const forged = await save('forged.ndjson', Buffer.from(text.replace('"told"', '"TOLD"')));
    const verdict = await bss(service, 'audit', 'verify', forged);
    expect([verdict.code, verdict.stdout]).toEqual([1, expect.stringMatching(/^NOT WHOLE: line/)]);
  });

  it('is compressed for clients that take it', async () => {
    const { hostname, port } = new URL(service.apiUrl);
    const { request } = await import('node:http');
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      const headers = { authorization: `Bearer ${keys.owner}`, 'accept-encoding': 'gzip' };
      const asked = request({ hostname, port, path: '/api/audit/export', headers }, (answer) => {
        expect(answer.headers['content-encoding']).toBe('gzip');
        void Array.fromAsync(answer).then((parts) => resolve(Buffer.concat(parts as Buffer[])));
      });
      asked.on('error', reject).end();
    });
    const file = await save('unpacked.ndjson', gunzipSync(bytes));
    await json(service, 'audit', 'verify', file);
  });

  it('is refused to a viewer', async () => {
    const { status, headers } = await download(service.apiUrl, keys.viewer);
    expect([status, headers.get('content-type')]).toEqual([403, expect.stringContaining('json')]);
  });

  it('needs the key of the service in each process', async () => {
    {
      await using without = await startSecondApi(service);
      const answer = await download(without.apiUrl, keys.owner);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({
        error: 'UNAVAILABLE',
        message: expect.stringContaining('AUDIT_KEY_FILE'),
        context: { part: 'audit-key' },
      });
    }
    const AUDIT_KEY_FILE = join(service.dataDir, 'audit-key');
    await using second = await startSecondApi(service, { AUDIT_KEY_FILE });
    const answer = await download(second.apiUrl, keys.owner);
    const file = await save('second.ndjson', Buffer.from(await answer.arrayBuffer()));
    await json(service, 'audit', 'verify', file, '--against-log');
  });
});
