import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import { startFlakyTcpProxy, type FlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { startNatsCluster, type NatsCluster } from '#test/support/servers/nats-cluster.ts';
import { passwordOf } from '#test/support/servers/nats-roles.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';

/** Two regions and the copy of their events, by the configurations in deploy/regions.md. */

const PATIENCE_MS = 120_000;
const COPY_PASSWORD = 'pw-copy-4f8a1c';
const PAGE = readFileSync(new URL('../../../deploy/regions.md', import.meta.url), 'utf8');
const [DOMAIN = '', USER = '', LEAF = '', COPY = '', STREAM = ''] = [
  ...PAGE.matchAll(/^```(?:json)?\n([^]*?)^```$/gm),
].map(([, text = '']) => text);

type Region = AsyncDisposable & {
  cluster: NatsCluster;
  service: RunningService;
  /** Of an organization whose home it is. */
  organization: string;
  api: ApiClient;
  /** Between the copy and the region. */
  link: FlakyTcpProxy;
  /** Where the link leads. */
  leafPort: number;
  /** All of the region's events, in the order of its event store. */
  events(): Promise<RecordedEvent[]>;
};

async function startRegion(name: string): Promise<Region> {
  await using stack = new AsyncDisposableStack();
  const ports = await freePorts(3);
  const [leafPort = 0] = ports;
  const link = stack.use(await startFlakyTcpProxy(leafPort));
  const cluster = stack.use(
    await startNatsCluster((config, index) => {
      const [, cert] = /cert_file: ("[^"]+")/.exec(config) ?? [];
      const [, key] = /key_file: ("[^"]+")/.exec(config) ?? [];
      const leaf = LEAF.replace('0.0.0.0:7422', `127.0.0.1:${ports[index]}`)
        .replace('$NATS_CERT', () => cert ?? '')
        .replace('$NATS_KEY', () => key ?? '')
        // The copy knows no way around the link.
        .replace('leafnodes {', 'leafnodes {\n  no_advertise: true');
      const user = USER.replaceAll('eu', name);
      return `${config
        .replace('jetstream {', () => `jetstream {\n${DOMAIN.replace('eu', name)}`)
        .replace('users: [', () => `users: [\n${user}`)}\n${leaf}`;
    }),
  );
  const service = stack.use(
    await startService({
      NATS_URL: cluster.urlOf('service'),
      NATS_CA_FILE: cluster.caFile,
      MASTER_KEY: `the-key-of-the-processes-of-region-${name}`,
      DEV_API_KEY: '',
      POOL_MAX: '20',
    }),
  );
  const operate = async (...args: string[]) => {
    const env = { ...operatorOf(cluster), REDIS_URL: service.runtime.redis_url };
    return saidBy(env, ...args) as Promise<Record<string, string>>;
  };
  const created = await operate('orgs', 'create', '--name', name, '--tier', 'max');
  const organization = created['organization_id'] ?? '';
  const issuing = ['--org', organization, '--role', 'owner', '--user', 'ann'];
  const { api_key: key = '' } = await operate('keys', 'issue', ...issuing);
  const api = (await connectApi(service.apiUrl)).as(key);
  await eventually(async () => (await api.get('/api/sessions')).status === 200, 'its key is known');
  const url = cluster.urlOf('operator');
  const tls = { caFile: cluster.caFile };
  const connection = stack.use(await connectJetStream({ url, tls, makesStreams: false }));
  const all = stack.move();
  return {
    ...{ cluster, service, organization, api, link, leafPort },
    events: () => eventsOf(connection),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const operatorOf = (cluster: NatsCluster) => ({
  NATS_URL: cluster.urlOf('operator'),
  NATS_CA_FILE: cluster.caFile,
});

async function saidBy(env: Record<string, string>, ...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await bssWith(env, ...args, '--json');
  if (code !== 0) throw new Error(`bss ${args.join(' ')}: ${code} ${stderr}${stdout}`);
  return JSON.parse(stdout) as unknown;
}

async function eventsOf(connection: JetStreamConnection): Promise<RecordedEvent[]> {
  const malformed: string[] = [];
  const eventStore = createJetStreamEventStore(connection);
  const read = readEvents(eventStore, filters.all, (text) => malformed.push(text));
  const events = await Array.fromAsync(read);
  expect(malformed).toEqual([]);
  return events;
}

let eu: Region;
let us: Region;
let copy: { connection: JetStreamConnection; env: Record<string, string> };
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  process.env['NATS_COPY_PASSWORD'] = COPY_PASSWORD;
  eu = stack.use(await startRegion('eu'));
  us = stack.use(await startRegion('us'));
  const remote = ({ link }: Region) => `[nats-leaf://copy:${COPY_PASSWORD}@127.0.0.1:${link.port}]`;
  const config = COPY.replace(/, store_dir: "[^"]*"/, '')
    .replace('$NATS_EU_CA', () => `"${eu.cluster.caFile}"`)
    .replace('$NATS_US_CA', () => `"${us.cluster.caFile}"`)
    .replace('$NATS_EU', () => remote(eu))
    .replace('$NATS_US', () => remote(us));
  const nats = stack.use(await startNats(config));
  const env = { NATS_URL: nats.url.replace('//', `//operator:${passwordOf('operator')}@`) };
  const options = { url: env.NATS_URL, makesStreams: false, requiresLog: false };
  const connection = stack.use(await connectJetStream(options));
  await connection.jsm.streams.add(JSON.parse(STREAM) as { name: string });
  copy = { connection, env };
}, PATIENCE_MS * 3);
afterAll(() => stack.disposeAsync());

/** Sessions that are active, and one that was extended, one that was stopped. */
async function work({ api }: Region): Promise<string[]> {
  const ids: string[] = [];
  for (let made = 0; made < 4; made += 1) {
    const { status, body } = await api.create({ duration: '1h' });
    expect([status, body.status]).toEqual([201, 'active']);
    ids.push(body.id);
  }
  const [first = '', second = ''] = ids;
  expect((await api.extend(first, '1h')).status).toBe(200);
  expect((await api.stop(second)).status).toBe(200);
  await eventually(
    async () => (await api.get(`/api/sessions/${second}`)).body.status === 'stopped',
    `${second} has ended`,
  );
  return ids;
}

/** What a region and the copy have to agree on; the sequences are each one's own. */
const contentOf = (events: readonly RecordedEvent[]) =>
  events.map((event) => ({ ...event, sequence: 0 }));

const partOf = (events: readonly RecordedEvent[], all: readonly RecordedEvent[]) => {
  const ids = new Set(events.map(({ id }) => id));
  return all.filter(({ id }) => ids.has(id));
};

/** Resolves once the copy has each event of both regions once, in each region’s order. */
async function untilWhole(): Promise<void> {
  await eventually(
    async () => {
      const regions = [await eu.events(), await us.events()];
      const all = await eventsOf(copy.connection);
      if (all.length < regions.flat().length) return false;
      for (const events of regions)
        expect(contentOf(partOf(events, all))).toEqual(contentOf(events));
      return all.length === regions.flat().length;
    },
    'the copy has all events',
    PATIENCE_MS,
  );
}

/** The sessions of both regions by `bss sql` on the copy, oldest first. */
async function listed(): Promise<Record<string, string>[]> {
  const query = 'select id, organization_id, status from sessions order by created_at';
  const { rows } = (await saidBy(copy.env, 'sql', query)) as { rows: Record<string, string>[] };
  return rows;
}

type Ledgers = { agrees: boolean; organizations: { organization_id: string }[] };
const audited = (env: Record<string, string>) => saidBy(env, 'audit', 'ledger') as Promise<Ledgers>;

/** The ledgers in the copy are the regions' own, to the credit. */
async function expectSameLedgers(): Promise<void> {
  const own = [await audited(operatorOf(eu.cluster)), await audited(operatorOf(us.cluster))];
  const ofCopy = await audited(copy.env);
  expect([...own, ofCopy].map(({ agrees }) => agrees)).toEqual([true, true, true]);
  const byId = (a: { organization_id: string }, b: { organization_id: string }) =>
    a.organization_id.localeCompare(b.organization_id);
  const expected = own.flatMap(({ organizations }) => organizations).toSorted(byId);
  expect(expected.length).toBe(2);
  expect(ofCopy.organizations.toSorted(byId)).toEqual(expected);
}

describe('two regions and a copy of their events', () => {
  test('sessions and ledgers of both are read from the copy', async () => {
    const [inEu, inUs] = await Promise.all([work(eu), work(us)]);
    await untilWhole();
    const rows = await listed();
    const idsOf = ({ organization }: Region) =>
      rows.filter((row) => row['organization_id'] === organization).map(({ id }) => id);
    expect([idsOf(eu), idsOf(us)]).toEqual([inEu, inUs]);
    expect(rows.filter(({ status }) => status === 'stopped')).toHaveLength(2);
    await expectSameLedgers();
  });

  test('no event crosses from one region to the other', async () => {
    for (const [region, other] of [
      [eu, us],
      [us, eu],
    ] as const) {
      const text = JSON.stringify(await region.events());
      expect(text).toContain(region.organization);
      expect(text).not.toContain(other.organization);
    }
  });

  test('nothing can be written to the copy', async () => {
    const created = await bssWith(copy.env, 'orgs', 'create', '--name', 'nowhere', '--tier', 'max');
    expect(created.code).not.toBe(0);
    expect(created.stderr).toContain('it has sources');
    await untilWhole();
  });

  test('a region that is cut off goes on, and the copy has all of it once they are joined', async () => {
    us.link.freeze();
    const [inEu, inUs] = await Promise.all([work(eu), work(us)]);
    await eventually(
      async () => (await listed()).filter(({ id = '' }) => inEu.includes(id)).length === 4,
      'the copy goes on with the other region',
    );
    expect((await listed()).filter(({ id = '' }) => inUs.includes(id))).toEqual([]);
    us.link.thaw();
    await untilWhole();
    expect((await listed()).filter(({ id = '' }) => inUs.includes(id))).toHaveLength(4);
    await expectSameLedgers();
  });

  test('a cut in the middle of what is sent loses and doubles nothing', async () => {
    const working = Promise.all([work(eu), work(us)]);
    const ended = working.then(() => true);
    let cuts = 0;
    while (!(await Promise.race([ended, new Promise((end) => setTimeout(end, 300, false))]))) {
      for (const { link, leafPort } of [eu, us]) link.leadTo(leafPort);
      cuts += 1;
    }
    await working;
    expect(cuts).toBeGreaterThan(0);
    await untilWhole();
    await expectSameLedgers();
  });
});
