import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { TENANT_API, tenantUses } from '#events/tenant-subjects.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import {
  create,
  json,
  newKey,
  newOrganization,
  untilAnswered,
} from '#test/support/clients/command-line.ts';
import {
  asOperator,
  connectTenant,
  forbiddenToHear,
  forbiddenToPublish,
  inboxOf,
  openWire,
  tenantAddress,
  type Tenant,
  type Wire,
} from '#test/support/clients/nats-tenant.ts';

/**
 * Two organizations on the embedded nats-server: `own` tries permitted and forbidden operations.
 */
let service: RunningService;
let own: Tenant;
let other: Tenant;
/** Event types that are stored but never published to tenants. */
const INSIDE = /serverIp|"cdp"|"hash"|fingerprint/;

beforeAll(async () => {
  service = await startService({
    POOL_MIN_IDLE: '4',
    POOL_MAX: '20',
    TENANT_CONNECTIONS_PER_KEY: '12',
  });
  [own, other] = [await newTenant(), await newTenant()];
});
afterAll(() => service?.[Symbol.asyncDispose]());

async function newTenant() {
  const organization = await newOrganization(service, '--tier', 'pro');
  const { api_key: key } = await newKey(service, organization, 'member');
  await untilAnswered(service, key, 200);
  return { organization, key };
}

async function newSession({ key }: { key: string }): Promise<string> {
  const { status, body } = await create(service, key);
  expect(status).toBe(201);
  return body.id as string;
}

describe('a tenant', () => {
  it('receives only its organization’s events, as they happen', async () => {
    const nc = await connectTenant(service, 'live', own.key);
    const received: string[] = [];
    const bodies: string[] = [];
    const numbers: number[] = [];
    nc.subscribe(`live.evt.${own.organization}.>`, {
      callback(_, message) {
        const { headers, subject } = message;
        bodies.push(message.string());
        numbers.push(Number(headers?.get('ce-orgsequence')));
        received.push(`${headers?.get('ce-type')} ${subject}`);
      },
    });
    await nc.flush();
    await newSession(other);
    const id = await newSession(own);
    const activated = `session.activated live.evt.${own.organization}.session.${id}.activated`;
    await eventually(() => received.includes(activated), 'it receives the event of its session');
    expect(received.filter((one) => !one.includes(own.organization))).toEqual([]);
    expect(numbers).toEqual(numbers.map((_, at) => Number(numbers[0]) + at));
    expect(bodies.join('\n')).toContain('"workload":{"workloadId":');
    expect(bodies.filter((body) => INSIDE.test(body))).toEqual([]);
    await nc.close();
  });

  it('consumes all its events with the durable consumer, and resumes after a restart', async () => {
    const id = await newSession(own);
    const seen: { subject: string; seq: number; inLog: number; own: number; body: string }[] = [];
    const read = async (isEnough: () => boolean) => {
      const nc = await connectTenant(service, 'durable', own.key);
      const js = jetstream(nc, { checkAPI: false, apiPrefix: TENANT_API });
      const consumer = await js.consumers.get('PUBLIC', `org_${own.organization}`);
      for await (const message of await consumer.consume({ max_messages: 2, expires: 2_000 })) {
        seen.push({
          subject: message.subject,
          seq: message.seq,
          inLog: Number(message.headers?.get('ce-sequence')),
          own: Number(message.headers?.get('ce-orgsequence')),
          body: message.string(),
        });
        expect(await message.ackAck()).toBe(true);
        if (isEnough()) break;
      }
      await nc.close();
    };
    await read(() => seen.length === 2);
    expect(seen[0]?.subject).toBe(`pub.${own.organization}.organization.registered`);
    const last = `pub.${own.organization}.session.${id}.activated`;
    await read(() => seen.at(-1)?.subject === last);
    for (const name of ['seq', 'inLog', 'own'] as const) {
      const order = seen.map((one) => one[name]);
      expect(order).toEqual([...new Set(order)].toSorted((a, b) => a - b));
    }
    expect(seen[0]?.own).toBe(1);
    expect(seen.filter(({ body }) => INSIDE.test(body))).toEqual([]);
    expect(seen.filter(({ subject }) => !subject.startsWith(`pub.${own.organization}.`))).toEqual(
      [],
    );
  });

  it('without a valid key is refused', async () => {
    const logins: object[] = [
      {},
      { user: 'live' },
      { user: 'live', pass: `${own.key}x` },
      { user: 'live', pass: own.key.slice(0, -1) },
      { user: 'service', pass: own.key },
      { user: 'admin', pass: own.key },
      { user: '', pass: own.key },
      { auth_token: own.key },
      { user: own.key },
    ];
    for (const login of logins) {
      using wire = await openWire(service, login);
      expect([login, await wire.ask('')]).toEqual([login, expect.stringMatching(/-ERR 'Auth/)]);
    }
  });

  it.each(tenantUses)('whose key is revoked is disconnected: %s', async (use) => {
    const { api_key: key, key_id } = await newKey(service, own.organization, 'member');
    await untilAnswered(service, key, 200);
    using wire = await openWire(service, { user: use, pass: key });
    using neighbour = await openWire(service, { user: use, pass: own.key });
    expect(await wire.ask('')).toContain('PONG');
    await json(service, 'keys', 'revoke', '--key', key_id);
    await wire.closed;
    using again = await openWire(service, { user: use, pass: key });
    expect(await again.ask('')).toContain('-ERR');
    expect(await neighbour.ask('')).toContain('PONG');
  });

  it('is limited to the connections per key', async () => {
    const { api_key: key } = await newKey(service, own.organization, 'member');
    await untilAnswered(service, key, 200);
    using stack = new DisposableStack();
    const login = { user: 'live', pass: key };
    const wires: Wire[] = [];
    for (let count = 0; count < 12; count += 1) {
      const wire = stack.use(await openWire(service, login));
      expect([count, await wire.ask('')]).toEqual([count, expect.stringContaining('PONG')]);
      wires.push(wire);
    }
    using tooMany = await openWire(service, login);
    expect(await tooMany.ask('')).toContain('-ERR');
    using neighbour = await openWire(service, { user: 'live', pass: own.key });
    expect(await neighbour.ask('')).toContain('PONG');
    wires[0]?.[Symbol.dispose]();
    await eventually(async () => {
      using again = await openWire(service, login);
      return (await again.ask('')).includes('PONG');
    }, 'there is room again');
  });

  it('receives events again after nats-server was killed', async () => {
    const nc = await connectTenant(service, 'live', DEV_KEY);
    let received = 0;
    nc.subscribe('live.evt.dev.>', {
      callback() {
        received += 1;
      },
    });
    await nc.flush();
    const { pid } = JSON.parse(await readFile(join(service.dataDir, 'nats.pid'), 'utf8'));
    process.kill(pid, 'SIGKILL');
    await eventually(async () => {
      await service.request(
        'POST',
        '/api/sessions',
        { duration: '1m' },
        { prefer: 'respond-async' },
      );
      return received > 0;
    }, 'it hears again');
    await nc.close();
  });
});

describe.each(tenantUses)('what a tenant may not do, as %s', (use) => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await openWire(service, { user: use, pass: own.key });
  });
  afterAll(() => wire?.[Symbol.dispose]());

  it('each publish is refused', async () => {
    const subjects = forbiddenToPublish(own, other);
    expect(subjects.length).toBeGreaterThan(40);
    for (const subject of subjects)
      expect([subject, await wire.publish(subject, '{}', `${inboxOf(own.key)}.x`)]).toEqual([
        subject,
        expect.stringContaining(`-ERR 'Permissions Violation for Publish to "${subject}"'`),
      ]);
  });

  it('each subscription is refused', async () => {
    const subjects = forbiddenToHear(use, own, other);
    expect(subjects.length).toBeGreaterThan(20);
    for (const [index, subject] of subjects.entries())
      expect([subject, await wire.subscribe(subject, `${index}`)]).toEqual([
        subject,
        expect.stringContaining(`-ERR 'Permissions Violation for Subscription to "${subject}"'`),
      ]);
  });
});

/**
 * JetStream answers to any subject that a request names as its reply. Here requests ask for
 * answers, and for acks of acks, on subjects of events, timers, commands or others' messages.
 */
test('a reply subject cannot redirect an answer to another subject', async () => {
  await using operator = await asOperator(service, own, other);
  const theirs = await openWire(service, { user: 'live', pass: other.key });
  await theirs.subscribe(`live.evt.${other.organization}.>`);
  const victim = await openWire(service, { user: 'durable', pass: other.key });
  await victim.subscribe(`${inboxOf(other.key)}.>`);
  await victim.ask('');

  using wire = await openWire(service, { user: 'durable', pass: own.key });
  const before = await operator.look();
  expect(Object.keys(before.subjects).length).toBeGreaterThan(5);
  const name = `PUBLIC.org_${own.organization}`;
  const replies = [
    `evt.${other.organization}.session.forged.stopped`,
    `evt.${own.organization}.session.forged.stopped`,
    `pub.${other.organization}.session.forged.stopped`,
    `live.evt.${other.organization}.session.forged.stopped`,
    'fleet.server.forged.left',
    `tmr.${other.organization}.forged.expiry`,
    'tmr.fired.x.forged.expiry',
    '$JS.API.STREAM.PURGE.TIMERS',
    '$JS.API.CONSUMER.DELETE.EVENTS.provisioner',
    '$SYS.REQ.SERVER.PING',
    `${TENANT_API}.CONSUMER.MSG.NEXT.PUBLIC.org_${other.organization}`,
  ];
  for (const reply of replies) {
    await wire.publish(`${TENANT_API}.CONSUMER.INFO.${name}`, '', reply);
    const next = JSON.stringify({ batch: 1, no_wait: true });
    await wire.publish(`${TENANT_API}.CONSUMER.MSG.NEXT.${name}`, next, reply);
    await wire.publish(`$JS.ACK.${name}.1.1.1.1.0`, '+ACK', reply);
    await wire.publish(`$JS.ACK.${name}.1.1.1.1.0`, '+NXT', reply);
  }
  const ofTheirs = await wire.publish(
    `${TENANT_API}.CONSUMER.INFO.${name}`,
    '',
    `$JS.ACK.PUBLIC.org_${other.organization}.1.1.1.1.0`,
  );
  expect(ofTheirs).toContain('-ERR');
  // JetStream answers in order: once the last request is answered, all are.
  await wire.subscribe(`${inboxOf(own.key)}.>`);
  await wire.publish(`${TENANT_API}.CONSUMER.INFO.${name}`, '', `${inboxOf(own.key)}.done`);
  await eventually(
    async () => (await wire.ask('')) !== '' && wire.received().includes('"num_pending"'),
    'it',
  );
  expect(await operator.look()).toEqual(before);
  expect(`${await theirs.ask('')}${await victim.ask('')}`).not.toContain('MSG');
  for (const one of [theirs, victim]) one[Symbol.dispose]();
});

test('runtime.json has the tenants’ address, without credentials', () => {
  expect(service.runtime.tenant_nats_url).toMatch(/^nats:\/\/127\.0\.0\.1:\d+$/);
  expect(new URL(service.runtime.nats_url).host).toBe(tenantAddress(service));
});
