import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createWebSocketStream, WebSocket } from 'ws';
import packageJson from '../../../package.json' with { type: 'json' };
import { connectRfb } from '#test/support/clients/rfb-client.ts';
import { eventually } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';
import {
  errorOf,
  timestamp,
  type ApiClient,
  type Reply,
} from '#test/support/clients/api-client.ts';

/** Every row of the interface specification, from a session's create to its stop. */

const HOUR = 3_600_000;
const MINUTE = 60_000;
let shared: SharedService;
/** The organization whose sessions these are. */
let organization: string;
let api: ApiClient;
let created: Reply;
let id: string;

beforeAll(async () => {
  shared = await shareService();
  ({ id: organization, owner: api } = await shared.organization());
  created = await api.create({
    session_name: 'Kür der Proben ✓',
    description: 'line one\nline two',
    duration: '1h30m',
    idle_timeout: '45m',
    labels: { team: 'web', 'run.id': '7' },
    viewport: { width: 1024, height: 768 },
    locale: 'de-CH',
    timezone: 'Europe/Zurich',
  });
  ({ id } = created.body);
});
afterAll(() => shared?.[Symbol.asyncDispose]());

function full(): Record<string, unknown> {
  return {
    id: expect.stringMatching(/^[A-Za-z0-9_-]{16,64}$/),
    session_name: 'Kür der Proben ✓',
    description: 'line one\nline two',
    status: 'active',
    user_id: 'owner-user',
    organization_id: organization,
    organization_role: 'owner',
    created_at: timestamp,
    started_at: timestamp,
    last_accessed_at: null,
    expires_at: timestamp,
    ended_at: null,
    ended_reason: null,
    vnc_url: expect.stringMatching(/^wss:\/\/127\.0\.0\.1:\d+\/\S+\/websockify$/),
    cdp_url: expect.stringMatching(/^ws:\/\/127\.0\.0\.1:\d+\/devtools\/browser\/[\w-]{22,}$/),
    bidi_url: expect.stringMatching(/^ws:\/\/127\.0\.0\.1:\d+\/devtools\/bidi\/[\w-]{22,}$/),
    vnc_password: expect.stringMatching(/^\S{8,}$/),
    viewer_url: expect.stringMatching(/^https?:\/\/127\.0\.0\.1:\d+\//),
    access_urls: { vnc_url: created.body.vnc_url, cdp_url: created.body.cdp_url },
    autoscaler_workload_id: expect.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
    autoscaler_server_id: expect.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
    autoscaler_server_ip: expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/),
    labels: { team: 'web', 'run.id': '7' },
    idle_timeout: '45m',
    viewport: { width: 1024, height: 768 },
    locale: 'de-CH',
    timezone: 'Europe/Zurich',
    headless: false,
    extensions: [],
    egress: null,
    geolocation: null,
    user_agent: null,
    permissions: [],
    record: false,
    profile: null,
    credits_reserved: 90,
    credits_used: null,
    handoff: null,
  };
}

describe('POST /api/sessions', () => {
  it('answers 201 with the session, active and ready for use', () => {
    expect(created.status).toBe(201);
    expect(created.body).toEqual(full());
    const location = new URL(String(created.headers['location']), 'http://host/api/sessions');
    expect(location.pathname).toBe(`/api/sessions/${id}`);
    expect(created.headers['server-timing']).toMatch(/^accept;dur=[\d.]+, browser;dur=/);
    const { created_at, started_at, expires_at } = created.body;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(1.5 * HOUR);
    expect(Date.parse(started_at)).toBeGreaterThanOrEqual(Date.parse(created_at));
  });

  it('needs no field and no body: 2 hours and a readable name are the defaults', async () => {
    for (const body of [{}, undefined, '', ' {} ']) {
      const { status, body: session } = await api.send('POST', '/api/sessions', { body });
      expect(status).toBe(201);
      expect(session.session_name).toMatch(/^[a-z]+-[a-z]+-\d+$/);
      expect(session.description).toBe('');
      expect(Date.parse(session.expires_at) - Date.parse(session.created_at)).toBe(2 * HOUR);
      expect(session).toMatchObject({ labels: {}, idle_timeout: null, credits_reserved: 120 });
      await api.stop(session.id);
    }
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;a=b'])(
    'takes a body of type %s',
    async (type) => {
      const sent = { body: '{"duration":"1h"}', headers: { 'content-type': type } };
      const { status, body } = await api.send('POST', '/api/sessions', sent);
      expect([status, body.credits_reserved]).toEqual([201, 60]);
      await api.stop(body.id);
    },
  );

  it.each([
    ['1m', MINUTE],
    ['30m', 30 * MINUTE],
    ['1h', HOUR],
    ['2h30m', 2.5 * HOUR],
    ['90m', 1.5 * HOUR],
    ['1h60m', 2 * HOUR],
    ['24h', 24 * HOUR],
    ['1440m', 24 * HOUR],
    ['0h5m', 5 * MINUTE],
  ])('takes a duration of %s', async (duration, ms) => {
    const { status, body } = await api.create({ duration });
    expect(status).toBe(201);
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(ms);
    await api.stop(body.id);
  });
});

describe('the addresses are usable', () => {
  it('cdp_url answers CDP without any change', async () => {
    const socket = new WebSocket(created.body.cdp_url);
    await once(socket, 'open');
    socket.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
    const [message] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(message.toString())).toMatchObject({ id: 1, result: { product: /\S/ } });
    socket.close();
  });

  it('vnc_url shows a screen to a client with the password', async () => {
    const socket = new WebSocket(created.body.vnc_url, 'binary', { rejectUnauthorized: false });
    using screen = await connectRfb(createWebSocketStream(socket), created.body.vnc_password);
    expect(screen.width).toBeGreaterThan(0);
  });
});

describe('GET /api/sessions', () => {
  it('answers exactly the six fields of the list rule', async () => {
    const { status, body } = await api.get('/api/sessions?status=active');
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['sessions', 'total', 'pagination']);
    expect(body.total).toBe(1);
    expect(body.pagination).toEqual({ limit: 20, offset: 0 });
    const { created_at, expires_at } = created.body;
    expect(body.sessions).toEqual([
      {
        id,
        session_name: 'Kür der Proben ✓',
        status: 'active',
        created_at,
        expires_at,
        last_accessed_at: expect.toSatisfy((at) => at === null || !Number.isNaN(Date.parse(at))),
      },
    ]);
  });
});

describe('GET /api/sessions/{id}', () => {
  it('answers every field, like the create', async () => {
    const { status, body } = await api.get(`/api/sessions/${id}`);
    expect(status).toBe(200);
    expect({ ...body, last_accessed_at: null }).toEqual(created.body);
  });

  it('of an unknown id is 404 with the id', async () => {
    const reply = await api.get('/api/sessions/ses_none');
    expect(errorOf(reply)).toBe('404 SESSION_NOT_FOUND');
    expect(reply.body.context).toEqual({ session_id: 'ses_none' });
  });
});

describe('GET /api/sessions/{id}/access', () => {
  it('answers the addresses to connect to, and counts as an access', async () => {
    const { vnc_url, cdp_url, bidi_url, vnc_password, viewer_url, expires_at } = created.body;
    const { status, body } = await api.get(`/api/sessions/${id}/access`);
    expect(status).toBe(200);
    expect(body).toEqual({
      session_id: id,
      status: 'active',
      vnc_url,
      vnc_password,
      cdp_url,
      bidi_url,
      viewer_url,
      access_urls: { vnc_url, cdp_url },
      expires_at,
    });
    const read = await api.get(`/api/sessions/${id}`);
    expect(read.body.last_accessed_at).toEqual(timestamp);
    const [row] = (await api.get('/api/sessions?status=active')).body.sessions;
    expect(row.last_accessed_at).toBe(read.body.last_accessed_at);
  });
});

describe('GET /api/status', () => {
  it('answers the browsers of the pool by state, and the load of the organization', async () => {
    // The browser of a session that was stopped ends a moment later.
    const { body } = await eventually(async () => {
      const reply = await api.get('/api/status');
      return reply.body.autoscaler?.pool_status.busy === 1 && reply;
    }, 'the session alone has a browser');
    expect(body).toEqual({
      autoscaler: { status: 'healthy', pool_status: expect.any(Object) },
      current_load: { active_sessions: 1, organization_id: organization },
      timestamp,
    });
    const { total, ...parts } = body.autoscaler.pool_status;
    const names = ['idle', 'busy', 'provisioning', 'launching', 'terminating'];
    expect(Object.keys(parts)).toEqual(names);
    for (const count of [total, ...Object.values(parts)]) expect(count).toBeTypeOf('number');
    expect(Object.values<number>(parts).reduce((sum, count) => sum + count, 0)).toBe(total);
  });
});

describe('GET /api/health', () => {
  it('answers without a credential', async () => {
    const askedAt = Date.now();
    const { status, body } = await api.get('/api/health', { key: null });
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 'healthy',
      service: packageJson.name,
      version: packageJson.version,
      timestamp,
      dependencies: {
        database: 'healthy',
        autoscaler: 'healthy',
        rate_limit: 'healthy',
        object_store: 'healthy',
      },
    });
    expect(Date.parse(body.timestamp)).toBeGreaterThanOrEqual(askedAt);
    expect(Date.parse(body.timestamp)).toBeLessThanOrEqual(Date.now());
  });

  it('and so does readiness', async () => {
    const { status, body } = await api.get('/api/ready', { key: null });
    expect([status, body.ready]).toEqual([200, true]);
    // The shared reader, and the consumers of the provisioner and the timekeeper.
    const silences = Object.entries(body.reader_silence_seconds);
    expect(silences.map(([reader]) => reader).toSorted()).toEqual([
      'EVENTS',
      'EVENTS/provisioner',
      'EVENTS/timekeeper',
      'TIMERS/timekeeper',
    ]);
    for (const [, seconds] of silences) expect(seconds).toBeGreaterThanOrEqual(0);
  });
});

describe('POST /api/sessions/{id}/extend', () => {
  it('moves the present expiry, and answers by how much', async () => {
    const { status, body } = await api.extend(id, '1h30m');
    expect(status).toBe(200);
    expect(body).toEqual({
      id,
      session_name: 'Kür der Proben ✓',
      status: 'active',
      expires_at: new Date(Date.parse(created.body.expires_at) + 1.5 * HOUR).toISOString(),
      message: expect.stringMatching(/1h30m\.$/),
    });
    const read = (await api.get(`/api/sessions/${id}`)).body;
    expect([read.expires_at, read.credits_reserved]).toEqual([body.expires_at, 180]);
  });
});

describe('DELETE /api/sessions/{id}', () => {
  it('answers that the session is stopped, and every later read shows it', async () => {
    const { status, body } = await api.stop(id);
    expect(status).toBe(200);
    expect(body).toEqual({ message: expect.stringMatching(/stopped/), session_id: id });
    const session = (await api.get(`/api/sessions/${id}`)).body;
    expect(session.status).toMatch(/^stopp(ing|ed)$/);
    const none = {
      vnc_url: null,
      cdp_url: null,
      bidi_url: null,
      vnc_password: null,
      viewer_url: null,
    };
    expect(session).toMatchObject({ ...none, ended_reason: 'user' });
  });
});

describe('the documents', () => {
  it('are served with the service, for programs and for people', async () => {
    const { status, body } = await api.get('/api/openapi.json', { key: null });
    expect([status, body.openapi]).toEqual([200, expect.stringMatching(/^3\.1\./)]);
    const page = await api.get('/docs', { key: null });
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).toContain("new URL('api/openapi.json', location.href)");
    const licences = await api.get('/licenses', { key: null });
    expect(licences.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(licences.body).toContain('Mozilla Public License Version 2.0');
  });
});
