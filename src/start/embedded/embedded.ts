/**
 * nats-server and redis-server as supervised children of the service, with their data in DATA_DIR.
 * Both listen on 127.0.0.1, each on a free port that it keeps until the service ends. NATS_PORT
 * makes nats-server listen on the API's host instead, for tenants.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { answersWith, freePort } from './loopback.ts';
import { endOrphan } from './orphan-process.ts';
import { natsConfig, type NatsSettings } from './nats-config.ts';
import { assertPortsFree } from './ports.ts';
import { loadOrCreateSecret, newSecret } from './secrets.ts';
import { supervise } from './supervise.ts';
import type { Program } from './supervise.ts';

export type EmbeddedEvent = {
  part: 'nats' | 'redis';
  /** gave-up: ten starts in a row failed; the part stays down. */
  what: 'started' | 'restarted' | 'gave-up';
  /** gave-up: the last output of the program, at most 2 KiB. */
  detail?: string;
};

export type Embedded = {
  /** Includes the service's user and password. */
  natsUrl?: string;
  redisUrl?: string;
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
    /** Public key of the issuer that admits tenants. */
    issuer: string;
  };
  onEvent: (event: EmbeddedEvent) => void;
};

/** After a crash nats-server reads the whole store, which takes long for a large one. */
const READY_MS = 60_000;

/**
 * Resolves when every requested part answers.
 * @throws ChildNotStarted, PortTaken
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { natsServer, redisServer, nats, onEvent } = options;
  const dataDir = resolve(options.dataDir);
  await using parts = new AsyncDisposableStack();
  const run = async (part: EmbeddedEvent['part'], program: Program): Promise<void> => {
    const child = await supervise(program, {
      onRestart: () => onEvent({ part, what: 'restarted' }),
      onGiveUp: (detail) => onEvent({ part, what: 'gave-up', detail }),
    });
    parts.use(child);
    onEvent({ part, what: 'started' });
  };
  const embedded: { natsUrl?: string; redisUrl?: string } = {};
  const starts: Promise<void>[] = [];
  if (natsServer !== undefined) {
    const place = { host: nats.host, port: nats.port ?? (await freePort()) };
    if (nats.port !== null) await assertNatsPortFree(place, dataDir);
    const password = await loadOrCreateSecret(dataDir, 'nats-password', newSecret);
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
  return { ...embedded, [Symbol.asyncDispose]: () => running.disposeAsync() };
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
  await writeFile(config, natsConfig({ ...settings, storeDir: folder }), { mode: 0o600 });
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

/** Ends the nats-server of a killed start. @throws PortTaken if another program uses the port */
async function assertNatsPortFree(
  place: { host: string; port: number },
  dataDir: string,
): Promise<void> {
  await endOrphan(join(dataDir, NATS_PID_FILE));
  await assertPortsFree([{ variable: 'NATS_PORT', ...place }]);
}

function addressOf({ host, port }: { host: string; port: number }): string {
  const name = reachable(host);
  return `${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** The address to connect to on this machine; loopback for a server on all addresses. */
function reachable(host: string): string {
  return ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
}

/** Redis with snapshots only: it holds a read model, and lost writes cost a rebuild. */
async function redisProgram(command: string, dataDir: string, port: number): Promise<Program> {
  const folder = join(dataDir, 'redis');
  await mkdir(folder, { recursive: true });
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder,
    save: '60 1000',
    appendonly: 'no',
    // How often in a second it looks after itself, and whether it is to end. At 10, its default,
    // an idle one takes 0.1 % of a core more; at 1 its end took up to a second.
    hz: '4',
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
