import { natsUsers, type NatsUser } from './nats-roles.ts';

/** What each user of deploy/nats.conf must not publish. */

export const session = (type: string) => `evt.acme.session.ses_1.${type}`;
const handoff = ['handoff-requested', 'handoff-taken', 'handoff-completed', 'handoff-expired'];
const filed = ['file-added', 'file-removed', 'file-refused'];
/** One event of every type of a session. */
const life = [
  'requested',
  'queued',
  'assigned',
  'requeued',
  'activated',
  'extended',
  'access-rotated',
  'expiry-warning',
  'accessed',
  ...handoff,
  ...['share-created', 'share-used', 'share-revoked'],
  ...filed,
  'updated',
  ...['profile-saved', 'profile-not-saved'],
  'stop-requested',
  'stopped',
  'failed',
];
const ends = ['stop-requested', 'stopped', 'failed'];
const profile = ['profile-saved', 'profile-not-saved'];
const allBut = (...mine: string[]) => life.filter((type) => !mine.includes(type)).map(session);

const money = ['evt.acme.ledger.credits-granted', 'evt.acme.ledger.slot-reserved'];
const people = ['organization.key-issued', 'profile.prf_1.removed'].map((one) => `evt.acme.${one}`);
const fleet = ['fleet.server.srv_1.joined', 'fleet.workload.wl_1.idle'];
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
    'evt.acme.profile.prf_1.version-saved',
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
/** Objects of a kind, which one role stores. */
const objectsOf = (kind: string) => [`obj.head.${kind}.acme.a`, `obj.chunk.${kind}.acme.a.p.0`];
const ofFiles = objectsOf('files');
const ofBrowsersAlone = ['profiles', 'recordings', 'thumbnails'].flatMap(objectsOf);
const ofCallers = objectsOf('extensions');
const objects = [...ofFiles, ...ofBrowsersAlone, ...ofCallers, '$JS.API.STREAM.PURGE.OBJECTS'];
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
    ...ofBrowsersAlone,
    ...allBut(
      ...['requested', 'extended', 'access-rotated', 'accessed', 'updated'],
      ...['stop-requested', 'stopped'],
      ...[...handoff, 'share-created', 'share-revoked'],
    ),
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...streams,
    // Of servers it may append only that an operator drains them.
    ...['left', 'lost', 'pool-resized', 'drained'].map((type) => `fleet.server.srv_1.${type}`),
    'retry.PUBLIC.x',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  projector: [
    ...mcp,
    ...objects,
    ...questions,
    ...allBut(),
    ...money,
    ...people,
    ...fleet,
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
    ...ofCallers,
    ...questions,
    ...allBut('assigned', 'requeued', 'activated', ...profile, ...filed, ...ends),
    ...money,
    ...people,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  gateway: [
    ...mcp,
    ...objects,
    ...questions,
    ...allBut('accessed', 'share-used'),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...leases,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  timekeeper: [
    ...objects,
    ...questions,
    ...allBut('queued', 'expiry-warning', 'handoff-expired', 'profile-not-saved', ...ends),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    'tmr.fired.acme.ses_1.expiry',
    ...leases,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  archivist: [
    ...mcp,
    ...ofFiles,
    ...ofBrowsersAlone,
    ...ofCallers,
    ...questions,
    ...allBut(),
    ...money,
    ...people,
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
    '$JS.API.STREAM.MSG.DELETE.PUBLIC',
  ],
  webhooks: [
    ...mcp,
    ...objects,
    ...questions,
    ...allBut(),
    ...money,
    ...people,
    'evt.acme.organization.webhook-added',
    ...fleet,
    ...work.provisioner,
    ...work.timekeeper,
    ...timers,
    ...tenants,
    ...streams,
    'parked.view.1',
    '$JS.API.STREAM.CREATE.EVENTS',
  ],
  operator: [
    ...mcp,
    ...objects,
    ...questions,
    ...allBut(),
    'evt.acme.ledger.slot-reserved',
    ...fleet,
    ...timers,
    ...leases,
    ...tenants,
    '$JS.API.CONSUMER.MSG.NEXT.EVENTS.provisioner',
    '$JS.ACK.EVENTS.provisioner.1.1.1.1.1',
  ],
  service: ['tmr.fired.acme.ses_1.expiry', ...streams.filter((name) => !/CREATE/.test(name))],
};
