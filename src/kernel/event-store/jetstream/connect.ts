import { readFile } from 'node:fs/promises';
import {
  jetstream,
  JetStreamApiError,
  jetstreamManager,
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
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { ConnectionStatus, JetStreamConnection } from './connection.ts';
import { isOutage, REQUEST_MS } from './request.ts';
import { replicasFor } from './replicas.ts';
import { prepareStreams } from './streams.ts';

export type ConnectOptions = {
  /**
   * `nats://[user:password@|token@]host:port`, several separated by commas; `tls://` requires TLS.
   */
  url: string;
  /** A `.creds` file, instead of a user. */
  credsFile?: string;
  /** PEM files, for `tls://`. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  /**
   * Default `_INBOX_<user>`, or `_INBOX` without a user. No other user needs permission for this
   * prefix.
   */
  inboxPrefix?: string;
  /**
   * Replicas of each new stream; default: 3 in a cluster, else 1. Existing streams keep theirs;
   * `raiseReplicas` raises them.
   */
  replicas?: number;
  /** Greatest size of the stream OBJECTS; default: a new one is unlimited, others keep theirs. */
  objectsMaxBytes?: number;
  /** Shown in the server's list of connections. */
  name?: string;
  onStatus?: (status: ConnectionStatus) => void;
  /**
   * Called for errors that the server reports outside any request: a subject that is not permitted.
   */
  onObjection?: (error: Error) => void;
  /** Called for each failure that is answered with a retry, with a description of what failed. */
  onFailure?: (error: unknown, what: string) => void;
  /**
   * Time limit in milliseconds from the first attempt to connect until the streams are ready;
   * default 10 s.
   */
  readyMs?: number;
  /**
   * Whether missing streams are created and others are updated; default true. If false, nothing is
   * changed.
   */
  makesStreams?: boolean;
  /** With `makesStreams: false`: whether to wait until another process creates the streams. */
  awaitsStreams?: boolean;
  /** With neither of these: whether missing streams are an error. */
  requiresLog?: boolean;
  /** Ends the wait for an unavailable server; the signal's reason is thrown. */
  signal?: AbortSignal;
};

/** The server is available, but no service has ever created its streams in it. */
export class EventStoreMissing extends Error {
  override readonly name = 'EventStoreMissing';
}

const READY_MS = 10_000;
const DRAIN_MS = 2_000;
/** A server that accepts connections may wait for its disk, or for its cluster's leader. */
const LOG_MS = 5_000;
const STREAM_NOT_FOUND = 10059;
/** Batches came with nats-server 2.11, atomic batches and schedules with 2.12. */
const VERSION_MIN = [2, 12];

/**
 * Connects and waits until JetStream is ready and the streams exist; from then on reconnects
 * forever.
 * @throws Error if that takes longer than `readyMs`, the server is too old or a stream is
 * incompatible; EventStoreMissing if streams are not to be created and none exist
 */
export async function connectJetStream(options: ConnectOptions): Promise<JetStreamConnection> {
  const deadline = performance.now() + (options.readyMs ?? READY_MS);
  const nc = await dial(options, deadline);
  try {
    requireVersion(nc.info?.version ?? '');
    const apiOptions = { checkAPI: false, timeout: REQUEST_MS };
    const jsm = await jetstreamManager(nc, apiOptions);
    const leftMs = Math.max(0, deadline - performance.now());
    const replicas = replicasFor(nc, options.replicas);
    const { makesStreams = true, awaitsStreams = false } = options;
    if (makesStreams || awaitsStreams)
      await prepareStreams(jsm, {
        withinMs: leftMs,
        replicas,
        makes: makesStreams,
        ...(options.objectsMaxBytes !== undefined && { sizedBytes: options.objectsMaxBytes }),
      });
    else if (options.requiresLog ?? true) await requireLog(jsm, hostsOf(options.url));
    const watched = watch(nc, options);
    return {
      nc,
      js: jetstream(nc, apiOptions),
      jsm,
      replicas,
      newInbox: () => createInbox(inboxPrefixOf(options)),
      report: (error, what) => options.onFailure?.(error, what),
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
        // With this option the client requires TLS.
        ...(tls !== undefined || url.startsWith('tls:') ? { tls: { ...tls } } : {}),
        ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
        ...(name === undefined ? {} : { name }),
        timeout: 2_000,
        maxReconnectAttempts: -1,
        // Without this option a second rejected login closes the connection for good, however late
        // it comes.
        ignoreAuthErrorAbort: true,
        reconnectTimeWait: 150,
        reconnectJitter: 100,
        // A peer that vanishes without closing is detected within 2.4 to 3.6 s; the health check
        // promises 5 s.
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
    await sleep(100);
  }
}

/** The client's error message in one line. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replaceAll(/\s+/g, ' ') : String(error);
}

/** Servers and credentials. The client does not read credentials from the URL itself. */
function addressOf(url: string): NodeConnectionOptions {
  const addresses = url.split(',').map((one) => new URL(one.trim()));
  const [first] = addresses;
  const servers = addresses.map((address) => address.host);
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  if (user === '') return { servers };
  return pass === '' ? { servers, token: user } : { servers, user, pass };
}

/**
 * An inbox prefix per user, for users whose name is a valid subject token, so that permissions can
 * name it.
 */
function inboxPrefixOf({ url, inboxPrefix }: ConnectOptions): string | undefined {
  if (inboxPrefix !== undefined) return inboxPrefix;
  const { user } = addressOf(url);
  return user !== undefined && isId(user) ? `_INBOX_${user}` : undefined;
}

/** The URL without its credentials, for messages. */
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

/** @throws EventStoreMissing; Error if a server that is busy or starting takes too long */
async function requireLog(jsm: JetStreamManager, hosts: string): Promise<void> {
  const deadline = performance.now() + LOG_MS;
  for (;;) {
    try {
      await jsm.streams.info(EVENTS_STREAM);
      return;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND)
        throw new EventStoreMissing(
          `the event store at ${hosts} has no streams; a start of the service creates them`,
        );
      if (!isOutage(error) || performance.now() > deadline) throw error;
    }
    await sleep(100);
  }
}

/** Follows the connection's status events. */
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
        for (const fail of asking) fail(new ConnectionError('the connection to NATS was lost'));
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
      await within(withinMs, promise, () => undefined);
      waiting.delete(resolve);
      return isConnected;
    },
  };
}

async function disconnect(nc: NatsConnection, isConnected: boolean): Promise<void> {
  if (nc.isClosed()) return;
  // Draining waits for the server's answer, which may not come.
  const drained = isConnected ? nc.drain().catch(() => {}) : Promise.resolve();
  await within(DRAIN_MS, drained, () => undefined);
  await nc.close();
}
