import { natsUsers, type NatsUser } from './nats-roles.ts';

/**
 * What each user of deploy/nats.conf must not publish, beside other roles' events and objects
 * (test/contract/event-writers.test.ts).
 */

export const session = (type: string) => `evt.acme.session.ses_1.${type}`;
/** JetStream requests that no user may send: they would lose or change events. */
const ruin = [
  '$JS.API.STREAM.DELETE.EVENTS',
  '$JS.API.STREAM.MSG.DELETE.EVENTS',
  '$JS.API.STREAM.DELETE.KV_leases',
  '$JS.API.STREAM.DELETE.KV_mcp',
  '$JS.API.STREAM.DELETE.OBJECTS',
  '$JS.API.STREAM.MSG.DELETE.OBJECTS',
  '$JS.API.ACCOUNT.PURGE.SERVICE',
  '$JS.API.SERVER.REMOVE',
  '$SYS.REQ.SERVER.PING.CONFIG',
];
/** Requests that no user but the archivist may send, and who has all roles. */
export const purges = ['$JS.API.STREAM.PURGE.EVENTS', '$JS.API.STREAM.PURGE.PUBLIC'];
/** Operator requests that change or create streams, or read all messages at once. */
export const streams = [
  '$JS.API.STREAM.RESTORE.EVENTS',
  '$JS.API.STREAM.SNAPSHOT.EVENTS',
  '$JS.API.STREAM.UPDATE.EVENTS',
  '$JS.API.STREAM.UPDATE.TIMERS',
  '$JS.API.STREAM.CREATE.MINE',
];
const work = {
  provisioner: [
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.provisioner',
    '$JS.API.CONSUMER.DELETE.EVENTS.provisioner',
    '$JS.API.CONSUMER.CREATE.EVENTS.provisioner',
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.1',
  ],
  timekeeper: [
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.timekeeper',
    '$JS.API.CONSUMER.DELETE.EVENTS.timekeeper',
    '$JS.API.CONSUMER.MSG.NEXT.TIMERS.timekeeper',
    '$JS.ACK.EVENTS.timekeeper.1.1.1.1.1',
    '$JS.ACK.TIMERS.timekeeper.1.1.1.1.1',
    '$JS.API.STREAM.PURGE.TIMERS',
  ],
};
const timers = ['tmr.acme.ses_1.expiry', 'tmr.fired.acme.ses_1.expiry'];
export const leases = ['$KV.leases.srv_1', '$JS.API.STREAM.PURGE.KV_leases'];
/** How far webhooks have come, and what of them is kept. */
export const hooks = [
  'hook.progress.whk_1',
  'hook.attempt.whk_1',
  '$JS.API.STREAM.PURGE.WEBHOOKS',
  '$JS.API.STREAM.PURGE.DELIVERIES',
];
/** Which MCP clients are there. */
const mcp = ['$KV.mcp.mcp_1', '$JS.API.STREAM.PURGE.KV_mcp'];
/** The API asks, the servers answer. */
const questions = ['ask.screenshot.srv_1', 'ask.files.srv_1'];
const objects = ['obj.account.acme', '$JS.API.STREAM.PURGE.OBJECTS'];
const tenants = ['pub.acme.session.ses_1.activated', 'live.evt.acme.session.ses_1.activated'];
export const everybody = [
  ...ruin,
  '_INBOX.somebody',
  'anything.else',
  'live.fleet.server.srv_1.joined',
];

/** No user may publish or subscribe to another user's inbox. */
export const inboxes = (me: NatsUser) =>
  natsUsers.filter((user) => user !== me).map((user) => `_INBOX_${user}.x`);

export const forbidden: Record<NatsUser, string[]> = {
  api: [
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...streams,
    'retry.PUBLIC.x',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  projector: [
    ...mcp,
    ...objects,
    ...questions,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...tenants,
    ...streams,
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  provisioner: [
    ...mcp,
    ...questions,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'dead-letters.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  gateway: [
    ...mcp,
    ...objects,
    ...questions,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...tenants,
    ...streams,
    'dead-letters.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  timekeeper: [
    ...objects,
    ...questions,
    ...work.provisioner,
    'tmr.fired.acme.ses_1.expiry',
    ...leases,
    ...tenants,
    ...streams,
    'dead-letters.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  archivist: [
    ...mcp,
    ...questions,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'dead-letters.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  webhooks: [
    ...mcp,
    ...objects,
    ...questions,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'dead-letters.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  operator: [
    ...mcp,
    ...objects,
    ...questions,
    ...timers,
    ...leases,
    ...tenants,
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.provisioner',
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.1',
  ],
  service: ['tmr.fired.acme.ses_1.expiry', ...streams.filter((name) => !/CREATE/.test(name))],
};
