import type { OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import { connect } from '@nats-io/transport-node';
import { jetstream } from '@nats-io/jetstream';
import { deadLetterSubject } from '#events/subjects.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';
import { eventually, type RunningService, type Service } from '#test/support/service/service.ts';
import { startReceiver } from '#test/support/webhooks/receiver.ts';

/**
 * The objects that the requests of a fuzz run are about. Those that a request removes or uses up
 * are spare ones; `renew` makes new ones of them, and anew what is gone.
 */
export type World = {
  document: OpenApiDocument;
  key: string;
  operatorToken: string;
  metricsToken: string;
  ports: { api: number; gateway: number };
  /** The path of a file of the dashboard. */
  asset: string;
  has: Kept;
  /** One of the kind that no other request gets; null: all are used up until they are renewed. */
  spare(kind: SpareKind): readonly string[] | null;
  /** Keeps what an answer gave, for later requests. */
  keep(kind: SpareKind, values: readonly string[]): void;
  renew(): Promise<void>;
} & AsyncDisposable;

/** Objects that stay. */
export type Kept = {
  /** Sessions that are driven and watched. */
  sessions: readonly DrivenSession[];
  ended: { id: string; segment: string };
  saver: string;
  profile: string;
  extension: string;
  webhook: string;
  delivery: string;
  handoff: { session: string; id: string };
  server: string;
};

export type DrivenSession = {
  id: string;
  cdpPath: string;
  vncPath: string;
  sharePath: string;
  bidiPath: string;
  /** Of its first page. */
  target: string;
};

/**
 * Each is a list of ids, as paths need them: a session to be stopped; one that may be changed; one
 * with a file, with a share, with a hand-off that is asked for, or taken …
 */
export type SpareKind =
  | 'session'
  | 'file'
  | 'share'
  | 'requested'
  | 'taken'
  | 'profile'
  | 'extension'
  | 'webhook'
  | 'key'
  | 'letter'
  | 'mcp'
  | 'webdriver';

const FILE = 'a b.txt';
const SPARES = 3;
const RECORDED_MS = 180_000;

/** What `renew` is to have of them; fewer where browsers are real. */
export type WorldSize = { driven: number; sessions: number; isReal: boolean };

export async function openWorld(
  service: RunningService,
  given: Pick<World, 'key' | 'operatorToken' | 'metricsToken'> & { size: WorldSize },
): Promise<World> {
  const { size, ...secrets } = given;
  const { key, operatorToken } = secrets;
  await using stack = new AsyncDisposableStack();
  const receiver = stack.use(
    await startReceiver(
      () => '',
      (_, __, reply) => void reply.end(),
    ),
  );
  const spares = new Map<SpareKind, (readonly string[])[]>();
  const ask = asker(service);
  const operator = { authorization: `Bearer ${operatorToken}` };
  let letters = 1;
  let uploads = 0;

  const keep = (kind: SpareKind, values: readonly string[]) =>
    void spares.set(kind, [...(spares.get(kind) ?? []), values]);
  const want = async (kind: SpareKind, count: number, make: () => Promise<readonly string[]>) => {
    const missing = count - (spares.get(kind)?.length ?? 0);
    const made = await Promise.all(Array.from({ length: Math.max(0, missing) }, make));
    for (const ids of made) keep(kind, ids);
  };
  const create = async (fields: object = {}) => {
    const body = { session_name: 'fuzz', duration: '2h', labels: { fuzz: 'spare' }, ...fields };
    const { id, status } = await ask('POST', '/api/sessions', body);
    await eventually(
      async () => {
        const now = await ask('GET', `/api/sessions/${id as string}`);
        if (now['status'] === 'failed') throw new Error(JSON.stringify(now));
        return now['status'] === 'active';
      },
      `a session is active that was ${status as string}`,
    );
    return id as string;
  };
  const isActive = async (id: string) =>
    (await ask('GET', `/api/sessions/${id}`))['status'] === 'active';

  async function drive(): Promise<DrivenSession> {
    const id = await create({ labels: { fuzz: 'driven' }, record: true });
    const access = await ask('GET', `/api/sessions/${id}/access`);
    await put(`/api/sessions/${id}/files/${encodeURIComponent(FILE)}`, Buffer.alloc(2_000, 'a'));
    const share = await ask('POST', `/api/sessions/${id}/shares`, {
      mode: 'view',
      expires_in: '2h',
    });
    const pathOf = (name: string) => new URL(String(access[name])).pathname;
    const cdp = new URL(String(access['cdp_url']).replace(/^ws/, 'http'));
    const list = (await (await fetch(`${cdp.href}/json/list`)).json()) as { id: string }[];
    return {
      id,
      cdpPath: cdp.pathname,
      vncPath: pathOf('vnc_url').replace(/websockify$/, ''),
      sharePath: new URL(String(share['url'])).pathname,
      bidiPath: pathOf('bidi_url'),
      target: list[0]?.id ?? '',
    };
  }
  /** Tries until the service has it: a part may be busy with what was sent before. */
  async function put(path: string, body: Buffer<ArrayBuffer>, method = 'PUT') {
    const headers = { authorization: `Bearer ${key}` };
    return eventually(async () => {
      const answer = await fetch(service.apiUrl + path, { method, body, headers }).catch(
        () => null,
      );
      if (answer === null || answer.status === 429 || answer.status >= 500) return false;
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
      return JSON.parse(text) as Record<string, unknown>;
    }, `${path} is put`);
  }
  const upload = async () => {
    const zip = await extensionZip({
      manifest_version: 3,
      name: `Fuzz ${(uploads += 1)}`,
      version: '1.0',
    });
    return String((await put('/api/extensions', Buffer.from(zip), 'POST'))['id']);
  };
  const handoff = async (session: string) => {
    const body = { instructions: 'Please sign in.', timeout: '1h' };
    return String((await ask('POST', `/api/sessions/${session}/handoffs`, body))['id']);
  };
  async function end(): Promise<Kept['ended']> {
    const id = await create({ record: true, labels: { fuzz: 'driven' } });
    const segmentOf = async () => {
      const { segments } = (await ask('GET', `/api/sessions/${id}/recording`)) as {
        segments: { name: string }[];
      };
      return segments[0]?.name ?? null;
    };
    const segment = await eventually(segmentOf, 'a session is recorded', RECORDED_MS);
    await ask('DELETE', `/api/sessions/${id}`);
    return { id, segment };
  }
  async function hook(): Promise<string> {
    const body = { url: receiver.url, types: ['session.stopped'] };
    return String((await ask('POST', '/api/webhooks', body))['id']);
  }
  async function delivered(webhook: string): Promise<string> {
    const find = async () => {
      const { deliveries } = (await ask('GET', `/api/webhooks/${webhook}/deliveries`)) as {
        deliveries: { id: string }[];
      };
      return deliveries[0]?.id ?? null;
    };
    return eventually(find, 'an event is delivered');
  }
  async function beginWebDriver(): Promise<readonly string[]> {
    const answer = await ask('POST', '/wd/hub/session', { capabilities: {} });
    return [(answer['value'] as { sessionId: string }).sessionId];
  }
  async function deadLetters(): Promise<readonly string[]> {
    const { host, username: user, password: pass } = new URL(service.runtime.nats_url);
    const connection = await connect({ servers: host, user, pass });
    const sequence = 900_000 + (letters += 1);
    const record = { by: 'gone:v1', sequence, subject: 'fleet.server.gone.joined', reason: 'fuzz' };
    const text = JSON.stringify({ ...record, at: new Date().toISOString(), skippedBy: null });
    await jetstream(connection).publish(deadLetterSubject('gone:v1', sequence), text);
    await connection.close();
    return [`${sequence}.gone:v1`];
  }
  /** What requests have made beyond what is kept: there are limits of them. */
  async function clear(): Promise<void> {
    const stays = new Set([...has.sessions.map(({ id }) => id), has.saver, has.handoff.session]);
    // A session of WebDriver is named by the service's, a dot and the driver's.
    const used = [...spares.values()].flat(2).map((id) => id.replace(/\.[0-9a-f]{32}$/, ''));
    for (const status of ['active', 'queued', 'creating']) {
      const page = await ask('GET', `/api/sessions?limit=100&status=${status}`);
      const ids = (page['sessions'] as { id: string }[]).map(({ id }) => id);
      const over = ids.filter((id) => !stays.has(id) && !used.includes(id));
      await Promise.all(over.map((id) => ask('DELETE', `/api/sessions/${id}`)));
    }
    const lists = { profiles: has.profile, webhooks: has.webhook, extensions: has.extension };
    for (const [name, kept] of Object.entries(lists)) {
      const all = (await ask('GET', `/api/${name}`))[name] as { id: string }[];
      for (const { id } of all)
        if (id !== kept && !used.includes(id)) await ask('DELETE', `/api/${name}/${id}`, null);
    }
    const { keys } = (await ask('GET', '/api/keys')) as {
      keys: { key_id: string; user_id: string }[];
    };
    for (const { key_id: id, user_id: user } of keys)
      if (!used.includes(id) && keys.length > 40 && user !== 'spare' && id !== ownKey)
        await ask('DELETE', `/api/keys/${id}`, null);
  }
  const { keys } = (await ask('GET', '/api/keys')) as { keys: { key_id: string }[] };
  const ownKey = keys[0]?.key_id;
  const servers = (await ask('GET', '/api/operator/servers', undefined, operator)) as {
    servers: { id: string }[];
  };

  const webhook = await hook();
  const profile = String((await ask('POST', '/api/profiles', { name: 'fuzz' }))['id']);
  const holder = await create();
  const has = {
    sessions: [] as DrivenSession[],
    ended: await end(),
    profile,
    saver: await create({ profile: { id: profile, save: true } }),
    extension: await upload(),
    webhook,
    delivery: await delivered(webhook),
    handoff: { session: holder, id: await handoff(holder) },
    server: servers.servers[0]?.id ?? '',
  };

  async function renew(): Promise<void> {
    await ask('POST', `/api/operator/servers/${has.server}/undrain`, undefined, operator);
    const alive = await Promise.all(has.sessions.map(({ id }) => isActive(id)));
    has.sessions = has.sessions.filter((_, at) => alive[at]);
    await clear();
    const missing = size.driven - has.sessions.length;
    has.sessions.push(...(await Promise.all(Array.from({ length: missing }, drive))));
    if (!(await isActive(has.saver)))
      has.saver = await create({ profile: { id: profile, save: true } });
    if (!(await isActive(has.handoff.session))) {
      const session = await create();
      has.handoff = { session, id: await handoff(session) };
    }
    await want('session', size.sessions, async () => [await create()]);
    const some = Math.min(SPARES, size.sessions);
    await want('requested', some, async () => {
      const id = await create();
      return [id, await handoff(id)];
    });
    await want('taken', some, async () => {
      const id = await create();
      const taken = await handoff(id);
      await ask('POST', `/api/sessions/${id}/handoffs/${taken}/take`);
      return [id, taken];
    });
    const [first] = has.sessions;
    const session = first?.id ?? '';
    // A session may have some shares at once, and each of them is used up.
    let shared: Promise<string> | null = null;
    await want('share', SPARES, async () => {
      const session = await (shared ??= create());
      const made = await ask('POST', `/api/sessions/${session}/shares`, {
        mode: 'view',
        expires_in: '2h',
      });
      return [session, String(made['id'])];
    });
    await want('file', SPARES, async () => {
      const name = `${crypto.randomUUID()}.txt`;
      await put(`/api/sessions/${session}/files/${name}`, Buffer.alloc(100, 'b'));
      return [session, name];
    });
    const body = { name: 'spare' };
    await want('profile', SPARES, async () => [
      String((await ask('POST', '/api/profiles', body))['id']),
    ]);
    await want('extension', SPARES, async () => [await upload()]);
    await want('webhook', SPARES, async () => [await hook()]);
    const wanted = { role: 'viewer', user_id: 'spare' };
    await want('key', SPARES, async () => [
      String((await ask('POST', '/api/keys', wanted))['key_id']),
    ]);
    await want('letter', SPARES, deadLetters);
    if (size.isReal) await want('webdriver', 2, beginWebDriver);
  }
  const { body: document } = await service.request('GET', '/api/openapi.json');
  const page = await (await fetch(`${service.apiUrl}/`)).text();
  const gateway = Number(new URL(service.runtime.gateway_ws_url ?? '').port);
  const ports = { api: Number(new URL(service.apiUrl).port), gateway };
  const all = stack.move();
  return {
    document: document as OpenApiDocument,
    ...secrets,
    ports,
    asset: /\/assets\/[^"]+/.exec(page)?.[0] ?? '/assets/none',
    has,
    spare: (kind) => spares.get(kind)?.pop() ?? null,
    keep,
    renew,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Asks until the service answers; a part may be busy with what was sent before. */
function asker(service: Service) {
  return async (method: string, path: string, body?: unknown, headers: object = {}) => {
    const answer = await eventually(async () => {
      const one = await service.request(method, path, body ?? undefined, headers).catch(() => null);
      return one !== null && one.status !== 429 && one.status < 500 && one;
    }, `${method} ${path} is answered`);
    const isFine = answer.status < 400 || answer.status === 404 || method === 'DELETE';
    if (!isFine)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, unknown>;
  };
}
