import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { TENANT_API, tenantInbox, type TenantUse } from '#events/tenant-subjects.ts';
import { hashKey } from '#src/kernel/ids.ts';
import type { RunningService } from '#test/support/service/service.ts';

/** An organization with one key. */
export type Tenant = { organization: string; key: string };

/** The address for tenants that the service reports. */
export function tenantAddress({ runtime }: RunningService): string {
  return new URL(runtime.tenant_nats_url ?? '').host;
}

/** A tenant's connection by the ordinary client. */
export function connectTenant(
  service: RunningService,
  use: TenantUse,
  key: string,
): Promise<NatsConnection> {
  const inboxPrefix = tenantInbox(hashKey(key));
  const servers = tenantAddress(service);
  // A server that restarts may be away for long, or be back before the service that admits tenants.
  const patience = { maxReconnectAttempts: -1, ignoreAuthErrorAbort: true, reconnectTimeWait: 100 };
  return connect({ servers, user: use, pass: key, inboxPrefix, ...patience });
}

/** The protocol by hand, for messages that no client would send. */
export async function openWire(service: RunningService, login: object) {
  const { hostname, port } = new URL(`nats://${tenantAddress(service)}`);
  const socket = dial(Number(port), hostname);
  let received = '';
  const asking: (() => void)[] = [];
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  socket.on('close', () => close());
  socket.on('error', () => {});
  socket.setEncoding('utf8').on('data', (text: string) => {
    const answered = pongsIn(received + text) - pongsIn(received);
    received += text;
    for (const resolve of asking.splice(0, answered)) resolve();
  });
  await once(socket, 'connect');
  socket.write(`CONNECT ${JSON.stringify({ verbose: false, ...login })}\r\n`);

  /** All text up to the answer to a ping, or to the connection's end. */
  async function ask(command: string): Promise<string> {
    const from = received.length;
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    asking.push(resolve);
    socket.write(`${command}PING\r\n`);
    await Promise.race([answered, closed]);
    return received.slice(from);
  }
  return {
    ask,
    closed,
    received: () => received,
    publish: (subject: string, body = '', reply = '') =>
      ask(`PUB ${subject} ${reply === '' ? '' : `${reply} `}${body.length}\r\n${body}\r\n`),
    subscribe: (subject: string, id = '9') => ask(`SUB ${subject} ${id}\r\n`),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

export type Wire = Awaited<ReturnType<typeof openWire>>;

function pongsIn(text: string): number {
  return text.split('PONG\r\n').length - 1;
}

/** The streams and consumers, as the service itself sees them. */
export async function asOperator({ runtime }: RunningService, own: Tenant, other: Tenant) {
  const { host, username: user, password: pass } = new URL(runtime.nats_url);
  const nc = await connect({ servers: host, user, pass });
  const jsm = await jetstreamManager(nc);
  return {
    /** The messages of the two organizations in the streams, and those that no tenant may read. */
    async look() {
      const subjects: Record<string, number> = {};
      for (const name of ['EVENTS', 'PUBLIC', 'TIMERS']) {
        const { state } = await jsm.streams.info(name, { subjects_filter: '>' });
        Object.assign(subjects, state.subjects);
      }
      const looked = [own.organization, other.organization, 'forged'];
      const isLooked = ([subject]: [string, unknown]) =>
        subject.split('.').some((token) => looked.includes(token));
      const consumers = await jsm.consumers.list('PUBLIC').next();
      return {
        subjects: Object.fromEntries(Object.entries(subjects).filter(isLooked)),
        consumers: consumers.map(({ name }) => name).toSorted(),
        theirs: consumers.find((one) => one.name === `org_${other.organization}`)?.num_pending,
      };
    },
    [Symbol.asyncDispose]: () => nc.close(),
  };
}

/** Subjects that a tenant might try to publish to or to request. */
export function forbiddenToPublish(own: Tenant, other: Tenant): string[] {
  const [mine, theirs] = [own.organization, other.organization];
  const api =
    'INFO STREAM.INFO.EVENTS STREAM.NAMES STREAM.LIST STREAM.CREATE.X STREAM.UPDATE.EVENTS ' +
    'STREAM.DELETE.EVENTS STREAM.PURGE.EVENTS STREAM.PURGE.PUBLIC STREAM.PURGE.TIMERS ' +
    'STREAM.MSG.GET.EVENTS STREAM.MSG.GET.PUBLIC DIRECT.GET.PUBLIC ' +
    `STREAM.MSG.DELETE.TIMERS STREAM.SNAPSHOT.EVENTS DIRECT.GET.EVENTS ` +
    `DIRECT.GET.EVENTS.evt.${mine}.ledger.slot-reserved CONSUMER.CREATE.EVENTS ` +
    `CONSUMER.CREATE.EVENTS.mine.evt.${mine}.> CONSUMER.DURABLE.CREATE.EVENTS.mine ` +
    `CONSUMER.DELETE.EVENTS.org_${mine} CONSUMER.PAUSE.EVENTS.provisioner CONSUMER.NAMES.EVENTS ` +
    `CONSUMER.LIST.EVENTS CONSUMER.INFO.EVENTS.org_${theirs} CONSUMER.INFO.EVENTS.provisioner ` +
    `CONSUMER.MSG.NEXT.EVENTS.org_${theirs} CONSUMER.MSG.NEXT.EVENTS.provisioner ` +
    `CONSUMER.CREATE.PUBLIC.mine.pub.${mine}.> CONSUMER.MSG.NEXT.PUBLIC.org_${theirs} ` +
    `CONSUMER.MSG.NEXT.PUBLIC.org_${mine} SERVER.REMOVE META.LEADER.STEPDOWN ` +
    'ACCOUNT.PURGE.SERVICE';
  return [
    ...[mine, theirs].flatMap((one) => [
      `evt.${one}.session.s.stopped`,
      `evt.${one}.ledger.credits-granted`,
      `pub.${one}.session.s.stopped`,
      `live.evt.${one}.session.s.stopped`,
      `tmr.${one}.s.expiry`,
      `tmr.fired.${one}.s.expiry`,
    ]),
    ...['fleet.server.s.left', 'anything', '_INBOX.x.y', `${inboxOf(other.key)}.x`, '_R_.x'],
    ...api.split(' ').map((subject) => `$JS.API.${subject}`),
    `${TENANT_API}.CONSUMER.MSG.NEXT.PUBLIC.org_${theirs}`,
    `${TENANT_API}.CONSUMER.MSG.NEXT.EVENTS.org_${theirs}`,
    `${TENANT_API}.CONSUMER.MSG.NEXT.PUBLIC.provisioner`,
    `${TENANT_API}.CONSUMER.MSG.NEXT.EVENTS.provisioner`,
    `${TENANT_API}.CONSUMER.INFO.PUBLIC.org_${theirs}`,
    `${TENANT_API}.CONSUMER.INFO.EVENTS.org_${theirs}`,
    `$JS.ACK.EVENTS.org_${theirs}.1.1.1.1.0`,
    `$JS.ACK.PUBLIC.org_${theirs}.1.1.1.1.0`,
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.0',
    ...['$KV.leases.x', '$SYS.REQ.USER.AUTH', '$SYS.REQ.SERVER.PING', '$SYS.REQ.SERVER.X.KICK'],
  ];
}

export function forbiddenToHear(use: TenantUse, own: Tenant, other: Tenant): string[] {
  const [mine, theirs] = [own.organization, other.organization];
  const common =
    `> * evt.> evt.${mine}.> pub.> pub.${mine}.> evt.*.session.> ` +
    `live.> live.evt.> live.evt.*.> live.*.${mine}.> live.evt.${theirs}.> live.fleet.> ` +
    `fleet.> tmr.> tmr.fired.> _INBOX.> _R_.> ` +
    `${inboxOf(other.key)}.> $JS.> $JS.API.> $JS.ACK.> $JS.EVENT.> $KV.> ` +
    `$SYS.> $SYS.REQ.USER.AUTH $SYS.ACCOUNT.> ${TENANT_API}.>`;
  return [...common.split(' '), ...(use === 'live' ? [] : [`live.evt.${mine}.>`])];
}

export function inboxOf(key: string): string {
  return tenantInbox(hashKey(key));
}
