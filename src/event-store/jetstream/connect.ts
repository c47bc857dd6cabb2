import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  jetstream,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamClient,
  type JetStreamManager,
} from '@nats-io/jetstream';
import {
  AuthorizationError,
  connect,
  ConnectionError,
  createInbox,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node';
import { EVENTS_STREAM, isId } from '#events/subjects.ts';
import { REQUEST_MS } from './request.ts';
import { replicasFor } from './replicas.ts';
import { hasArchiveStream, prepareStreams } from './streams.ts';

/**
 * One connection to the log, for all adapters of a process. Disposing lets what is under way
 * finish.
 */
export type JetStreamConnection = AsyncDisposable & {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /** Copies of a new stream: as asked for at connecting, else as the servers have it. */
  readonly replicas: number;
  /** A new subject that answers to this connection alone come to. */
  newInbox(): string;
  /** The log has an archive, which may answer its direct reads and lags: the leader does not. */
  readonly hasArchive: boolean;
  isConnected(): boolean;
  /** True once connected; false where that did not come within the bound, or never will. */
  whenConnected(withinMs: number): Promise<boolean>;
  /** The request's answer; rejects as soon as the connection breaks, since then none will come. */
  whileConnected<Answer>(request: Promise<Answer>): Promise<Answer>;
  /** Calls the listener after every reconnect, until the function it returns is called. */
  onReconnect(listener: () => void): () => void;
  /** Tells of a failure that is met by trying again, and that nobody else would hear of. */
  report(error: unknown, what: string): void;
};

export type ConnectionStatus = 'connected' | 'disconnected';

export type ConnectOptions = {
  /**
   * `nats://[user:password@|token@]host:port`, several separated by commas; `tls://`: never plain.
   */
  url: string;
  /** A `.creds` file, in place of a user. */
  credsFile?: string;
  /** Files in PEM, for `tls://`. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /** Default `_INBOX_<user>`, `_INBOX` without one: nobody else need be let in there. */
  inboxPrefix?: string;
  /**
   * Copies of each stream that is made; left out: 3 in a cluster, else 1. Those that are there keep
   * theirs: `raiseReplicas` gives them more.
   */
  replicas?: number;
  /** Shown in the server's list of connections. */
  name?: string;
  onStatus?: (status: ConnectionStatus) => void;
  /** Told of what the server objects to beside any request: a subject that is not allowed. */
  onObjection?: (error: Error) => void;
  /** Told of failures that are met by trying again, and of what is tried. */
  onFailure?: (error: unknown, what: string) => void;
  /** From the first try to connect to streams that are ready; default 10 s. */
  readyMs?: number;
  /** Whether streams that are not there are made; default: they are. Else nothing is changed. */
  makesStreams?: boolean;
  /** Where they are not made here, whether somebody else's making them is waited for. */
  awaitsStreams?: boolean;
  /** Where they are neither made nor awaited: whether it is an error that there are none. */
  requiresLog?: boolean;
  /** Whether the archive is one of them; default: no. One that is there already stays. */
  hasArchive?: boolean;
  /** Ends the waiting for a server that is not there; what it was aborted with is thrown. */
  signal?: AbortSignal;
};

/** The server is there, and no service has ever made its log in it. */
export class NoLog extends Error {
  override readonly name = 'NoLog';
}

const READY_MS = 10_000;
const DRAIN_MS = 2_000;
const STREAM_NOT_FOUND = 10059;
/** Batches came with 2.11, atomic ones and schedules with 2.12. */
const VERSION_MIN = [2, 12];

/**
 * Connects, waits until JetStream is ready and the streams stand; from then on reconnects for ever.
 * @throws Error where that takes longer than `readyMs`, the server is too old or a stream unfit;
 * NoLog where streams are not to be made and there are none
 */
export async function connectJetStream(options: ConnectOptions): Promise<JetStreamConnection> {
  const deadline = performance.now() + (options.readyMs ?? READY_MS);
  const nc = await dial(options, deadline);
  try {
    requireVersion(nc.info?.version ?? '');
    const apiOptions = { checkAPI: false, timeout: REQUEST_MS };
    const jsm = await jetstreamManager(nc, apiOptions);
    const leftMs = Math.max(0, deadline - performance.now());
    const hasArchive = options.hasArchive ?? false;
    const replicas = replicasFor(nc, options.replicas);
    const { makesStreams = true, awaitsStreams = false } = options;
    const bound = { withinMs: leftMs, hasArchive: hasArchive && makesStreams };
    if (makesStreams || awaitsStreams)
      await prepareStreams(jsm, { ...bound, replicas, makes: makesStreams });
    else if (options.requiresLog ?? true) await requireLog(jsm, hostsOf(options.url));
    const watched = watch(nc, options);
    return {
      nc,
      js: jetstream(nc, apiOptions),
      jsm,
      replicas,
      newInbox: () => createInbox(inboxPrefixOf(options)),
      report: (error, what) => options.onFailure?.(error, what),
      hasArchive: await hasArchiveStream(jsm),
      ...watched,
      [Symbol.asyncDispose]: () => disconnect(nc, watched.isConnected()),
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

async function dial(options: ConnectOptions, deadline: number): Promise<NatsConnection> {
  const { url, name, signal, tls, credsFile } = options;
  const inboxPrefix = inboxPrefixOf(options);
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await connect({
        ...addressOf(url),
        ...(credsFile === undefined
          ? {}
          : { authenticator: credsAuthenticator(await readFile(credsFile)) }),
        // Given, the client goes on with TLS or not at all.
        ...(tls !== undefined || url.startsWith('tls:') ? { tls: { ...tls } } : {}),
        ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
        ...(name === undefined ? {} : { name }),
        timeout: 2_000,
        maxReconnectAttempts: -1,
        // Else the second refusal of a login ends it for good, however late it comes.
        ignoreAuthErrorAbort: true,
        reconnectTimeWait: 150,
        reconnectJitter: 100,
        // A peer that vanished without a word is noticed within 2.4 to 3.6 s: health says so in 5.
        pingInterval: 1_200,
        maxPingOut: 2,
        // Saves a stack trace for every request.
        noAsyncTraces: true,
      });
    } catch (error) {
      if (error instanceof AuthorizationError || performance.now() > deadline)
        throw new Error(`no connection to NATS at ${hostsOf(url)}: ${reasonOf(error)}`, {
          cause: error,
        });
    }
    await delay(100);
  }
}

/** What the client says, in one line. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replaceAll(/\s+/g, ' ') : String(error);
}

/** Servers and credentials; the client does not read the latter from the address itself. */
function addressOf(url: string): NodeConnectionOptions {
  const addresses = url.split(',').map((one) => new URL(one.trim()));
  const [first] = addresses;
  const servers = addresses.map((address) => address.host);
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  if (user === '') return { servers };
  return pass === '' ? { servers, token: user } : { servers, user, pass };
}

/** Users whose name is a token each have a place for their answers, as permissions want it. */
function inboxPrefixOf({ url, inboxPrefix }: ConnectOptions): string | undefined {
  if (inboxPrefix !== undefined) return inboxPrefix;
  const { user } = addressOf(url);
  return user !== undefined && isId(user) ? `_INBOX_${user}` : undefined;
}

/** The address less its credentials, for messages. */
function hostsOf(url: string): string {
  return url
    .split(',')
    .map((one) => new URL(one.trim()).host)
    .join(', ');
}

function requireVersion(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [majorMin = 0, minorMin = 0] = VERSION_MIN;
  if (major < majorMin || (major === majorMin && minor < minorMin))
    throw new Error(
      `nats-server ${version} is too old: ${VERSION_MIN.join('.')} or later is needed`,
    );
}

/** @throws NoLog */
async function requireLog(jsm: JetStreamManager, hosts: string): Promise<void> {
  try {
    await jsm.streams.info(EVENTS_STREAM);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    throw new NoLog(`there is no service's log at ${hosts}; a start of the service makes it`);
  }
}

/** Follows the connection's own reports. */
function watch(
  nc: NatsConnection,
  { onStatus, onObjection }: Pick<ConnectOptions, 'onStatus' | 'onObjection'>,
) {
  let isConnected = true;
  const onReconnected = new Set<() => void>();
  const waiting = new Set<() => void>();
  const asking = new Set<(error: ConnectionError) => void>();

  async function listen() {
    for await (const status of nc.status()) {
      const { type } = status;
      if (type === 'error') onObjection?.(status.error);
      else if (type === 'disconnect') {
        isConnected = false;
        onStatus?.('disconnected');
        for (const fail of asking) fail(new ConnectionError('the connection broke'));
      } else if (type === 'reconnect') {
        isConnected = true;
        onStatus?.('connected');
        for (const listener of onReconnected) listener();
        for (const resume of waiting) resume();
      }
    }
    isConnected = false;
    for (const resume of waiting) resume();
  }
  void listen();
  onStatus?.('connected');

  return {
    isConnected: () => isConnected,
    onReconnect(listener: () => void) {
      onReconnected.add(listener);
      return () => void onReconnected.delete(listener);
    },
    async whileConnected<Answer>(request: Promise<Answer>) {
      const { promise: broken, reject } = Promise.withResolvers<never>();
      asking.add(reject);
      try {
        return await Promise.race([request, broken]);
      } finally {
        asking.delete(reject);
      }
    },
    async whenConnected(withinMs: number) {
      if (isConnected || nc.isClosed()) return isConnected;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      const timer = setTimeout(resolve, withinMs);
      await promise;
      clearTimeout(timer);
      waiting.delete(resolve);
      return isConnected;
    },
  };
}

async function disconnect(nc: NatsConnection, isConnected: boolean): Promise<void> {
  if (nc.isClosed()) return;
  // Draining waits for the server's answer, which may not come.
  const drained = isConnected ? nc.drain().catch(() => {}) : Promise.resolve();
  await Promise.race([drained, delay(DRAIN_MS, undefined, { ref: false })]);
  await nc.close();
}
