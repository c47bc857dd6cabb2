import { jsonBody } from './parts.ts';
import type { Random } from './random.ts';
import type { Kept, SpareKind, World } from './world.ts';
import { extensions } from './extensions.ts';

/** What a request of an operation is about, where the document cannot say it. */
export type Example = {
  /** For the parameters of the path. */
  ids?: (world: World) => readonly string[];
  body?: (random: Random, world: World) => Buffer;
  query?: (random: Random) => [string, string][];
  /** A credential of its own. */
  key?: (world: World) => string;
  needs?: 'real' | 'alone';
  success?: 'none';
};

const has = (select: (kept: Kept) => readonly string[]) => (world: World) => select(world.has);
const spare = (kind: SpareKind) => (world: World) => world.spare(kind) ?? ['none', 'none'];
/** One that is not used up. */
const peek = (kind: SpareKind) => (world: World) => {
  const ids = world.spare(kind);
  if (ids !== null) world.keep(kind, ids);
  return ids ?? ['none', 'none'];
};

const driven = has(({ sessions }) => [sessions[0]?.id ?? 'none']);
const ended = has(({ ended: { id, segment } }) => [id, segment]);
const file = has(({ sessions }) => [sessions[0]?.id ?? 'none', 'a b.txt']);
const handoff = has(({ handoff: { session, id } }) => [session, id]);
const webhook = has(({ webhook: id, delivery }) => [id, delivery]);
const extension = has(({ extension: id }) => [id]);
const profile = has(({ profile: id }) => [id]);
const server = has(({ server: id }) => [id]);

/** A page that needs no network. */
const page = (random: Random) => ({
  url: random.pick(['data:text/html,<h1>Fuzz</h1>', 'data:text/html,', 'http://127.0.0.1:1/']),
  ...(random.chance(0.3) && { wait_until: 'domcontentloaded' }),
  ...(random.chance(0.2) && { wait_for: random.pick(['h1', 'h2', ':::', '\u0000']) }),
  ...(random.chance(0.2) && { full_page: true }),
  ...(random.chance(0.1) && { timeout_ms: random.pick([1, 500, 5_000]) }),
});
const call: Example = {
  needs: 'real',
  body: (random) => jsonBody(page(random)).body ?? Buffer.alloc(0),
};
const json = (value: (random: Random, world: World) => unknown) => ({
  body: (random: Random, world: World) => jsonBody(value(random, world)).body ?? Buffer.alloc(0),
});

/** By operation id; what is not here has no parameter in its path, and the document's example. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  takeScreenshot: call,
  printPdf: call,
  getPageContent: call,
  getMetrics: { key: ({ metricsToken }) => metricsToken },
  getSession: { ids: driven },
  updateSession: { ids: peek('session') },
  stopSession: { ids: spare('session') },
  getSessionAccess: { ids: driven },
  rotateSessionAccess: { ids: peek('session') },
  openDebuggerAddress: { ids: peek('session') },
  closeDebuggerAddress: { ids: peek('session') },
  extendSession: {
    ids: peek('session'),
    ...json((random) => ({ duration: `${1 + random.int(3)}m` })),
  },
  getSessionHistory: { ids: driven },
  getSessionWhy: { ids: driven },
  stopSessions: {
    needs: 'alone',
    ...json((random) => ({
      filter: random.pick([{ label: ['fuzz=spare'] }, { status: 'queued' }, { label: ['a=b'] }]),
      ...(random.chance(0.5) && { dry_run: true }),
      ...(random.chance(0.3) && { reason: 'deploy' }),
    })),
  },
  getSessionScreenshot: { ids: driven },
  // A picture is taken once a minute.
  getSessionThumbnail: { ids: ended, success: 'none' },
  getSessionRecording: { ids: ended },
  getRecordingSegment: { ids: ended },
  listSessionFiles: { ids: driven },
  getSessionFile: { ids: file },
  deleteSessionFile: { ids: spare('file') },
  putSessionFile: {
    ids: ({ has: { sessions } }) => [sessions.at(-1)?.id ?? 'none', 'put.bin'],
    body: (random) => random.bytes(random.int(3_000)),
  },
  getSessionFilesZip: { ids: driven },
  requestHandoff: { ids: peek('session') },
  listHandoffs: { ids: handoff },
  getHandoff: { ids: handoff },
  takeHandoff: { ids: spare('requested') },
  completeHandoff: { ids: spare('taken') },
  createShare: { ids: peek('session') },
  listShares: { ids: driven },
  revokeShare: { ids: spare('share') },
  getProfile: { ids: profile },
  removeProfile: { ids: spare('profile') },
  saveSessionProfile: { ids: has(({ saver }) => [saver]) },
  streamSessionEvents: { ids: driven },
  getWebhook: { ids: webhook },
  changeWebhook: { ids: peek('webhook') },
  deleteWebhook: { ids: spare('webhook') },
  rotateWebhookSecret: { ids: peek('webhook') },
  listDeliveries: { ids: webhook },
  getDelivery: { ids: webhook },
  replayWebhook: { ids: peek('webhook'), ...json((random) => ({ from: 1 + random.int(300) })) },
  uploadExtension: { body: extensions },
  getExtension: { ids: extension },
  deleteExtension: { ids: spare('extension') },
  revokeKey: { ids: spare('key') },
  drainServer: { ids: server, needs: 'alone' },
  undrainServer: { ids: server, needs: 'alone' },
  rebuildReadModel: { ids: () => ['workloads'], needs: 'alone' },
  retryDeadLetter: { ids: peek('letter') },
  skipDeadLetter: { ids: spare('letter') },
  runAudit: { needs: 'alone' },
};
