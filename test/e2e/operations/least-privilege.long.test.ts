import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Finding } from '#src/apps/doctor/finding.ts';
import { startRoles, type Roles } from '#test/support/deploy/roles.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import { eventually } from '#test/support/service/service.ts';

/**
 * The service role by role, one process and one NATS user each, on the configuration in deploy/: no
 * process requests more than its permissions, and everything works.
 */

type ArchiveStatus = { event_store: { first_sequence: number } };

let deployed: Roles;
let services: Roles['services'];
let bss: Roles['bss'];
let bssJson: Roles['bssJson'];
let audit = '';
/** A session that has ended. */
let ended: string;

beforeAll(async () => {
  deployed = await startRoles({ RETAIN_ENDED: '5s', ARCHIVE_EVERY: '1s', QUEUE_AFTER: '100ms' });
  ({ services, bss, bssJson } = deployed);
  audit = `${services.api.dataDir}.audit.jsonl`;
});
afterAll(async () => {
  await deployed?.[Symbol.asyncDispose]();
  if (audit !== '') await rm(audit, { force: true });
});

/** The browser's answer to CDP's Browser.getVersion. */
async function drive(cdpUrl: string): Promise<unknown> {
  const socket = new WebSocket(cdpUrl);
  try {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    socket.once('error', reject);
    socket.once('open', () => socket.send('{"id":1,"method":"Browser.getVersion"}'));
    socket.once('message', (data: Buffer) => resolve(JSON.parse(data.toString())));
    return await promise;
  } finally {
    socket.terminate();
  }
}

describe('role by role', () => {
  test('a session lives from its create to its end', async () => {
    const { api } = services;
    await eventually(
      async () => (await api.request('GET', '/api/health')).body.status === 'healthy',
      'all roles are there',
    );
    const created = await api.request('POST', '/api/sessions', { duration: '30m' });
    expect(created).toMatchObject({ status: 201, body: { status: 'active' } });
    const { id, cdp_url } = created.body;
    expect(await drive(cdp_url)).toMatchObject({ id: 1, result: { product: expect.any(String) } });
    ended = id;
    const path = `/api/sessions/${id}`;
    expect((await api.request('POST', `${path}/extend`, { duration: '30m' })).status).toBe(200);
    expect((await api.request('GET', `${path}/access`)).status).toBe(200);
    expect((await api.request('PATCH', path, { labels: { run: 'one' } })).status).toBe(200);
    const filter = { label: ['run=one'] };
    const stopped = await api.request('POST', '/api/sessions/stop', { filter });
    expect(stopped).toMatchObject({ status: 200, body: { stopped: 1, sessions: [id] } });
    expect((await api.request('DELETE', path)).status).toBe(200);
    const isOver = async () => (await api.request('GET', path)).body.status === 'stopped';
    await eventually(isOver, 'it is stopped');
    const history = await bss('session', 'history', id);
    for (const type of ['requested', 'activated', 'accessed', 'extended', 'updated', 'stopped'])
      expect(history).toContain(`session.${type}`);
  });

  test('a session is handed to a person and shared, and a hand-off expires', async () => {
    const { api } = services;
    const { id } = (await api.request('POST', '/api/sessions', { duration: '30m' })).body;
    const path = `/api/sessions/${id}`;
    const shared = await api.request('POST', `${path}/shares`, { mode: 'view', expires_in: '10m' });
    expect(shared.status).toBe(201);
    const { url } = shared.body as { url: string };
    const viewer = new WebSocket(url.replace(/^http/, 'ws').replace(/#.*$/, 'websockify'));
    await once(viewer, 'open');
    const isUsed = async () =>
      (await api.request('GET', `${path}/shares`)).body.shares[0].used as boolean;
    await eventually(isUsed, 'its use is recorded');
    viewer.terminate();
    const share = `${path}/shares/${shared.body.id}`;
    expect((await api.request('DELETE', share)).status).toBe(200);

    const ask = { instructions: 'Sign in.', timeout: '1m' };
    const asked = (await api.request('POST', `${path}/handoffs`, ask)).body;
    const own = `${path}/handoffs/${asked.id}`;
    expect((await api.request('POST', `${own}/take`)).status).toBe(200);
    expect((await api.request('POST', `${own}/complete`, { success: true })).status).toBe(200);
    const late = `${path}/handoffs/${(await api.request('POST', `${path}/handoffs`, ask)).body.id}`;
    const hasExpired = async () => (await api.request('GET', late)).body.status === 'expired';
    await eventually(hasExpired, 'the timekeeper has expired it');
    await api.request('DELETE', path);
  });

  test('sessions are queued for a browser, and get it', async () => {
    const { api } = services;
    const now = { prefer: 'respond-async' };
    const many = Array.from({ length: 6 }, () =>
      api.request('POST', '/api/sessions', { duration: '30m' }, now),
    );
    const made = (await Promise.all(many)).map(({ body }) => body as { id: string });
    const queued = async () => {
      const { body } = await api.request('GET', '/api/sessions?status=queued');
      return (body.total as number) > 0;
    };
    await eventually(queued, 'those beyond the pool wait');
    for (const { id } of made) await api.request('DELETE', `/api/sessions/${id}`);
    const left = async () => {
      const asked = ['active', 'queued', 'creating', 'stopping'].map((status) =>
        api.request('GET', `/api/sessions?status=${status}`),
      );
      return (await Promise.all(asked)).every(({ body }) => body.total === 0);
    };
    await eventually(left, 'all are gone');
  });

  test('bss works with the operator’s NATS user', async () => {
    const { organization_id: org } = await bssJson<{ organization_id: string }>(
      ...['orgs', 'create', '--name', 'Acme', '--tier', 'pro'],
    );
    const { key_id } = await bssJson<{ key_id: string }>(
      ...['keys', 'issue', '--org', org, '--role', 'member', '--user', 'ann'],
    );
    await bss('credits', 'grant', '--org', org, '--amount', '100');
    await bss('keys', 'revoke', '--key', key_id);
    for (const command of ['orgs list', `keys list --org ${org}`, `credits show --org ${org}`])
      await bss(...command.split(' '));
    await bss('credits', 'statement', '--org', org);
    await bss('dead-letters', 'list');
    await bss('projections', 'list');
    await bss('projections', 'rebuild', 'session-view');
    await bss('projections', 'verify', 'session-view');
    await bss('audit', 'export', '--org', org, '--out', audit);
    const [server = ''] = /srv_[\w-]+/.exec(await bss('servers', 'list')) ?? [];
    await bss('servers', 'drain', server);
    await bss('servers', 'undrain', server);
  });

  test('the archivist archives what has ended, and others read it in the archive', async () => {
    const isPurged = async () => {
      const first = await bssJson<{ sequence: number }[]>('session', 'history', ended);
      const status = await bssJson<ArchiveStatus>('archive', 'status');
      return status.event_store.first_sequence > (first.at(-1)?.sequence ?? Infinity);
    };
    await eventually(isPurged, 'its last event is out of the event store');
    const { status, body } = await services.api.request('GET', `/api/sessions/${ended}`);
    expect([status, body.status]).toEqual([200, 'stopped']);
    expect(services.archivist.output()).toContain('"msg":"archived"');
    expect(services.archivist.output()).not.toContain('archiving failed');
    expect(await readdir(services.api.dataDir)).not.toContain('archive');
  });

  test('bss archive run works with the archivist’s NATS user, and verify with the operator’s', async () => {
    const { operator, archive } = deployed;
    const env = { ...operator, ARCHIVE_URL: archive, DATA_DIR: services.archivist.dataDir };
    const own = { ...env, ...deployed.access('archivist') };
    let refusal = '';
    const isDone = async () => {
      const run = await bssWith(own, 'archive', 'run', '--json');
      if (run.code === 0) return true;
      refusal = run.stderr;
      // The archivist has the lease, or the machine is too busy to answer in time.
      if (refusal.includes('"UNAVAILABLE"')) return false;
      throw new Error(`bss archive run: ${refusal}`);
    };
    await eventually(isDone, 'a run of its own').catch((error: unknown) => {
      throw new Error(`bss archive run: ${refusal}`, { cause: error });
    });
    const verified = await bssWith(env, 'archive', 'verify', '--json');
    expect(verified).toMatchObject({ code: 0, stderr: '' });
  });

  test('bss objects sweep works with the archivist’s NATS user, and keys with the operator’s', async () => {
    await bss('objects', 'keys');
    const { operator, archive } = deployed;
    const env = { ...operator, ARCHIVE_URL: archive, ...deployed.access('archivist') };
    for (const more of [[], ['--remove']])
      await eventually(async () => {
        const swept = await bssWith(env, 'objects', 'sweep', ...more, '--json');
        // The archivist sweeps.
        if (swept.code !== 0 && swept.stderr.includes('Another process sweeps')) return false;
        expect(swept).toMatchObject({ code: 0, stderr: '' });
        return true;
      }, `a sweep with ${more.join()}`);
  });

  test('the doctor may read the settings of the servers', async () => {
    const { stdout } = await bssWith(deployed.operator, 'doctor', '--json');
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    const log = findings.filter(({ check }) => check.startsWith('log.'));
    expect(log.filter(({ level }) => level !== 'ok')).toEqual([]);
    expect(log.map(({ check }) => check)).toEqual(
      expect.arrayContaining(['log.sync', 'log.streams', 'log.permissions', 'log.clock']),
    );
  });

  test('no process has exceeded its permissions', () => {
    expect(deployed.objections()).toEqual([]);
  });
});
