/**
 * nats-server and redis-server as supervised children of the service, with their data in DATA_DIR.
 * Both listen on 127.0.0.1, each on a free port that it keeps until the service ends, unless the
 * operator names another place for nats-server, where tenants find it.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { removeStaging, stageBatchesInMemory } from './batch-staging.ts';
import { SERVICE_ACCOUNT } from '#events/tenant-subjects.ts';
import { answersWith, freePort } from './loopback.ts';
import { endLeftover } from './orphan-process.ts';
import { natsConfig, type NatsSettings } from './nats-config.ts';
import { assertPortsFree } from './ports.ts';
import { keptSecret, newSecret } from './secrets.ts';
import { supervise } from './supervise.ts';
import type { Program } from './supervise.ts';

export type EmbeddedEvent = {
  part: 'nats' | 'redis';
  /** gave-up: it died ten times in a row and stays down. */
  what: 'started' | 'restarted' | 'gave-up';
  /** What it wrote last, at most 2 KiB, when it gave up. */
  detail?: string;
};

export type Embedded = {
  /** With the service's own user and password. */
  natsUrl?: string;
  redisUrl?: string;
  /** To be called once the stream is there; from then on it is seen to after each restart. */
  stageBatches(stream: string): Promise<void>;
} & AsyncDisposable;

export type EmbeddedOptions = {
  /** Locked by the caller. */
  dataDir: string;
  /** Paths of the programs; a part without one is not started. */
  natsServer?: string;
  redisServer?: string;
  /** Where nats-server listens; port null: a free one. */
  nats: {
    host: string;
    port: number | null;
    /** Public key of who lets tenants in. */
    issuer: string;
  };
  onEvent: (event: EmbeddedEvent) => void;
};

/** A large log takes nats-server long to read through after a crash. */
const READY_MS = 60_000;

/**
 * Resolves when every part that was asked for answers.
 * @throws ChildNotStarted, PortTaken
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { natsServer, redisServer, nats, onEvent } = options;
  const dataDir = resolve(options.dataDir);
  await using parts = new AsyncDisposableStack();
  const storeDir = join(dataDir, 'nats', 'jetstream');
  let staged: string | null = null;
  const stageBatches = async (stream: string): Promise<void> => {
    staged = stream;
    await stageBatchesInMemory(storeDir, stream);
  };
  const run = async (part: EmbeddedEvent['part'], program: Program): Promise<void> => {
    const child = await supervise(program, {
      onRestart: () => {
        onEvent({ part, what: 'restarted' });
        if (part === 'nats' && staged !== null) void stageBatches(staged);
      },
      onGiveUp: (detail) => onEvent({ part, what: 'gave-up', detail }),
    });
    parts.use(child);
    onEvent({ part, what: 'started' });
  };
  parts.defer(() => removeStaging(storeDir));
  const embedded: { natsUrl?: string; redisUrl?: string } = {};
  const starts: Promise<void>[] = [];
  if (natsServer !== undefined) {
    const place = { host: nats.host, port: nats.port ?? (await freePort()) };
    if (nats.port !== null) await assertOurs(place, dataDir);
    const password = await keptSecret(dataDir, 'nats-password', newSecret);
    const settings = { ...place, issuer: nats.issuer, user: SERVICE_USER, password };
    starts.push(run('nats', await natsProgram(natsServer, dataDir, settings)));
    embedded.natsUrl = `nats://${SERVICE_USER}:${password}@${addressOf(place)}`;
  }
  if (redisServer !== undefined) {
    const port = await freePort();
    starts.push(run('redis', await redisProgram(redisServer, dataDir, port)));
    embedded.redisUrl = `redis://127.0.0.1:${port}`;
  }
  const failed = (await Promise.allSettled(starts)).find((start) => start.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  const running = parts.move();
  return { ...embedded, stageBatches, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

const SERVICE_USER = 'service';
const NATS_PID_FILE = 'nats.pid';

async function natsProgram(
  command: string,
  dataDir: string,
  settings: Omit<NatsSettings, 'storeDir'>,
): Promise<Program> {
  const folder = join(dataDir, 'nats');
  const config = join(folder, 'nats.conf');
  const { user, password, host, port } = settings;
  await mkdir(folder, { recursive: true });
  await takeOverStreams(join(folder, 'jetstream'));
  await writeFile(config, natsConfig({ ...settings, storeDir: folder }), { mode: 0o600 });
  // One that an earlier version wrote is for everybody to read.
  await chmod(config, 0o600);
  const login = JSON.stringify({ verbose: false, user, pass: password });
  const request = 'SUB _INBOX.ready 1\r\nPUB $JS.API.INFO _INBOX.ready 0\r\n\r\n';
  const askJetStream = `CONNECT ${login}\r\n${request}`;
  return {
    name: 'nats-server',
    command,
    args: ['--config', config],
    pidFile: join(dataDir, NATS_PID_FILE),
    logFile: join(dataDir, 'nats.log'),
    answers: () =>
      answersWith(port, askJetStream, /MSG _INBOX\.ready [^]*"limits"/, reachable(host)),
    readyMs: READY_MS,
  };
}

/** @throws PortTaken where somebody has the port who is no server that an earlier start has left */
async function assertOurs(place: { host: string; port: number }, dataDir: string): Promise<void> {
  await endLeftover(join(dataDir, NATS_PID_FILE));
  await assertPortsFree([{ variable: 'NATS_PORT', ...place }]);
}

function addressOf({ host, port }: { host: string; port: number }): string {
  const name = reachable(host);
  return `${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** Who listens everywhere is reached on this machine by its loopback address. */
function reachable(host: string): string {
  return ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
}

/** Before tenants were let in, the streams were those of the account of a server that has none. */
async function takeOverStreams(storeDir: string): Promise<void> {
  const [before, now] = [join(storeDir, '$G'), join(storeDir, SERVICE_ACCOUNT)];
  if (existsSync(before) && !existsSync(now)) await rename(before, now);
}

/** Snapshots only: what it holds is a read model, and losing some of it costs a rebuild. */
async function redisProgram(command: string, dataDir: string, port: number): Promise<Program> {
  const folder = join(dataDir, 'redis');
  await mkdir(folder, { recursive: true });
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder,
    save: '60 1000',
    appendonly: 'no',
    // A full disk must not stop the projections.
    'stop-writes-on-bgsave-error': 'no',
  };
  return {
    name: 'redis-server',
    command,
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    pidFile: join(dataDir, 'redis.pid'),
    logFile: join(dataDir, 'redis.log'),
    answers: () => answersWith(port, 'PING\r\n', /^\+PONG/),
    readyMs: READY_MS,
  };
}
