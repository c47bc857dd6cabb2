import { createWebSocketStream, WebSocket } from 'ws';
import type { Cluster } from './cluster.ts';
import { keepTail } from '../output.ts';

/**
 * Programs in a running container. The protocol is that of `kubectl exec`, in the version in which
 * a message ends the input (Kubernetes 1.30 and later): each message begins with the number
 * of its channel. The client's own `Exec` has no bound on what it buffers.
 */
const PROTOCOL = 'v5.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const CLOSE = 255;
/** Longer input is sent in several messages. */
const MESSAGE_BYTES = 64 * 1024;
/** The longest wait for a program's start. */
const STARTED_WITHIN_MS = 30_000;

export type Place = { pod: string; container: string };

export type ExecOptions = {
  /** What the program reads; absent: nothing. */
  input?: AsyncIterable<Uint8Array>;
  signal: AbortSignal;
};

/** A program in a container did not exit with 0. */
export class ProgramFailed extends Error {
  override readonly name = 'ProgramFailed';
  readonly exitCode: number;
  constructor(exitCode: number, output: string) {
    super(`a program in the Pod exited with ${exitCode}: ${output}`);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a program to its end; what it prints is dropped.
 * @throws ProgramFailed; what reading the input throws; the signal's reason; Error where the
 * connection broke
 */
export async function execute(
  cluster: Cluster,
  place: Place,
  command: readonly string[],
  options: ExecOptions,
): Promise<void> {
  for await (const _ of output(cluster, place, command, options));
}

/**
 * Runs a program and yields what it prints, as that is pulled. A reader that stops
 * ends the connection, not the program.
 * @throws as `execute`, after the last piece
 */
export async function* output(
  cluster: Cluster,
  place: Place,
  command: readonly string[],
  { input, signal }: ExecOptions,
): AsyncGenerator<Buffer> {
  signal.throwIfAborted();
  const socket = await open(cluster, place, command, input !== undefined, signal);
  const failed = new AbortController();
  const ends = AbortSignal.any([signal, failed.signal]);
  const end = () => socket.terminate();
  ends.addEventListener('abort', end, { once: true });
  const stream = createWebSocketStream(socket, { readableObjectMode: true });
  stream.on('error', () => undefined);
  const errors = keepTail();
  let status: ProgramStatus | null = null;
  const sending = send(socket, input).catch((error: unknown) => failed.abort(error));
  try {
    for await (const message of stream as AsyncIterable<Buffer>) {
      const [channel] = message;
      const rest = message.subarray(1);
      if (channel === STDOUT) yield rest;
      if (channel === STDERR) errors.add(rest.toString().trimEnd());
      if (channel === STATUS) status = JSON.parse(rest.toString()) as ProgramStatus;
    }
  } catch (error) {
    ends.throwIfAborted();
    throw error;
  } finally {
    ends.removeEventListener('abort', end);
    socket.terminate();
    await sending;
  }
  // A program that ends before it has read its input breaks the sending, and tells why itself.
  if (status === null) ends.throwIfAborted();
  const exitCode = exitCodeOf(status);
  if (exitCode !== 0) throw new ProgramFailed(exitCode, errors.text());
}

/** Resolves when the connection stands: the program has started. */
async function open(
  { config, namespace }: Cluster,
  { pod, container }: Place,
  command: readonly string[],
  hasInput: boolean,
  signal: AbortSignal,
): Promise<WebSocket> {
  const server = config.getCurrentCluster()?.server ?? '';
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec`;
  const url = new URL(server.replace(/^http/, 'ws') + path);
  url.search = new URLSearchParams([
    ...Object.entries({ container, stdin: String(hasInput), stdout: 'true', stderr: 'true' }),
    ...command.map((word): [string, string] => ['command', word]),
  ]).toString();
  const options = { perMessageDeflate: false, handshakeTimeout: STARTED_WITHIN_MS };
  await config.applyToHTTPSOptions(options);
  const socket = new WebSocket(url, [PROTOCOL], options);
  const opened = Promise.withResolvers<void>();
  const abort = () => {
    opened.reject(signal.reason as Error);
    socket.terminate();
  };
  signal.addEventListener('abort', abort, { once: true });
  socket.once('open', opened.resolve);
  // Before the handshake; the stream's reader gets later errors.
  socket.on('error', opened.reject);
  socket.once('unexpected-response', (request, response) => {
    request.destroy();
    const told = `the API server answered ${response.statusCode} to the start of a program`;
    opened.reject(Object.assign(new Error(told), { statusCode: response.statusCode }));
  });
  await opened.promise.finally(() => signal.removeEventListener('abort', abort));
  return socket;
}

async function send(socket: WebSocket, input?: AsyncIterable<Uint8Array>): Promise<void> {
  if (input === undefined) return;
  for await (const piece of input)
    for (let at = 0; at < piece.length; at += MESSAGE_BYTES)
      await sendMessage(socket, STDIN, piece.subarray(at, at + MESSAGE_BYTES));
  await sendMessage(socket, CLOSE, Buffer.from([STDIN]));
}

/** Resolves when the message has left this process: no more than one is in its memory. */
async function sendMessage(socket: WebSocket, channel: number, bytes: Uint8Array): Promise<void> {
  const sent = Promise.withResolvers<void>();
  const message = Buffer.concat([Buffer.from([channel]), bytes]);
  socket.send(message, (error) => (error == null ? sent.resolve() : sent.reject(error)));
  await sent.promise;
}

type ProgramStatus = {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
};

function exitCodeOf(status: ProgramStatus | null): number {
  if (status === null) throw new Error('the connection to a program in the Pod broke');
  if (status.status === 'Success') return 0;
  const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode');
  if (cause === undefined) throw new Error(`a program in the Pod failed: ${status.message}`);
  return Number(cause.message);
}
