import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { connectApi } from '#test/support/clients/api-client.ts';
import { asKey } from '#test/support/clients/command-line.ts';
import { readProcesses, type LeakSurface } from './leak-surfaces.ts';
import { startRealService, type RealService } from './real-session.ts';
import { openLog } from './service-log.ts';
import { DEV_KEY } from './service.ts';

const ORGANIZATION = 'acme';
const MASTER_KEY = 'a-master-key-that-must-not-be-found-anywhere';
const JWT_SECRET = 'a-jwt-secret-that-must-not-be-found-anywhere';
const PROXY_PASSWORD = 'a-proxy-password-that-must-not-be-found-anywhere';
const WRONG_KEY = 'bss_dev_a-key-that-opens-no-organization';

/** A service in which a session was used and stopped, and all secrets involved. */
export type SessionWithSecrets = {
  service: RealService;
  organization: string;
  sessionId: string;
  /** Every secret that was generated or configured, by name. */
  secrets: ReadonlyMap<string, string>;
  /** A text in the session's description: a stand-in for a leak that the search must find. */
  canary: string;
  /** The answers to the session's owner, which contain its password and tickets. */
  ownAnswers: string;
  /** The answers to refused requests. */
  refusals: readonly LeakSurface[];
  /** The processes of the service and its children, while the browser ran. */
  processes: ReturnType<typeof readProcesses>;
};

/** Starts the service, uses a session in every way, ends it, and has many requests refused. */
export async function startWithSecrets(): Promise<SessionWithSecrets> {
  const service = await startRealService({
    MASTER_KEY,
    LOG_LEVEL: 'trace',
    ...{ JWT_SECRET, JWT_ISSUER: 'issuer', JWT_AUDIENCE: 'audience' },
  });
  const canary = `planted "secret" / with + signs = ${randomUUID()}`;
  await using opened = await openLog(service);
  const api = await connectApi(service.apiUrl);
  await opened.register(ORGANIZATION, 'pro', 1_000);
  const [member, viewer, admin] = [
    await opened.issueKey(ORGANIZATION, 'member', api),
    await opened.issueKey(ORGANIZATION, 'viewer', api),
    await opened.issueKey(ORGANIZATION, 'admin', api),
  ];
  const { sessionId, secrets, answers, processes } = await useSession(service, member, canary);
  const refusals = await refuse(service, sessionId, { member, viewer, canary });
  await opened.revokeKey(ORGANIZATION, viewer);
  return {
    service,
    organization: ORGANIZATION,
    sessionId,
    secrets: new Map([
      ...Object.entries({ 'member key': member, 'viewer key': viewer, 'admin key': admin }),
      ...Object.entries({ 'master key': MASTER_KEY, 'JWT secret': JWT_SECRET }),
      ...Object.entries({ 'wrong key': WRONG_KEY, 'development key': DEV_KEY }),
      ...secrets,
    ]),
    canary,
    ownAnswers: answers.join('\n'),
    refusals,
    processes,
  };
}

/** Creates a session, reads and extends it, connects to its browser, and stops it. */
async function useSession(service: RealService, key: string, canary: string) {
  const answers: string[] = [];
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await asKey(service, key, method, path, body);
    answers.push(JSON.stringify(answer.body));
    return answer.body;
  };
  const proxy = { server: 'http://192.0.2.1:3128', username: 'shop', password: PROXY_PASSWORD };
  const egress = { allow: ['example.com'], proxy };
  const asked = { duration: '30m', labels: { team: 'web' }, description: canary, egress };
  const { id } = (await ask('POST', '/api/sessions', asked)) as { id: string };
  const path = `/api/sessions/${id}`;
  await ask('GET', path);
  await ask('POST', `${path}/extend`, { duration: '10m' });
  const access = await ask('GET', `${path}/access`);
  const secrets = new Map<string, string>([
    ['password of the egress proxy', PROXY_PASSWORD],
    ['VNC password', access.vnc_password],
    ['CDP ticket', access.cdp_url.split('/').at(-1)],
    ['VNC ticket', access.vnc_url.split('/').at(-2)],
  ]);
  const socket = new WebSocket(access.cdp_url);
  await once(socket, 'open');
  const closed = once(socket, 'close');
  const processes = readProcesses(service.pid);
  await ask('DELETE', path);
  await closed;
  return { sessionId: id, secrets, answers, processes };
}

/** Sends requests that are refused, with secrets in them. */
async function refuse(
  service: RealService,
  sessionId: string,
  { member, viewer, canary }: { member: string; viewer: string; canary: string },
): Promise<LeakSurface[]> {
  const path = `/api/sessions/${sessionId}`;
  const refused: [key: string, method: string, path: string, body?: unknown][] = [
    [WRONG_KEY, 'GET', '/api/sessions'],
    [WRONG_KEY, 'GET', '/api/events'],
    [`${JSON.stringify({ alg: 'none' })}.${WRONG_KEY}.`, 'GET', '/api/status'],
    [viewer, 'POST', '/api/sessions', {}],
    [viewer, 'GET', `${path}/access`],
    [member, 'POST', '/api/sessions', { duration: canary }],
    [member, 'GET', `/api/${encodeURIComponent(canary)}`],
    [member, 'POST', '/api/sessions', { colour: 'red' }],
    [member, 'GET', `${path}/access`],
    [member, 'POST', `${path}/extend`, { duration: '1h' }],
    [member, 'GET', '/api/sessions/ses_that_never_was/events'],
    [DEV_KEY, 'GET', path],
  ];
  const refusals: LeakSurface[] = [];
  for (const [key, method, at, body] of refused) {
    const { status, body: answer } = await asKey(service, key, method, at, body);
    expect(status, `${method} ${at}`).toBeGreaterThanOrEqual(400);
    refusals.push({ name: `refusal of ${method} ${at}`, text: JSON.stringify(answer) });
  }
  return refusals;
}
