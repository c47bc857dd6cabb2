/**
 * Loaded into the service by `--import`: notes when the process writes to and reads from its
 * sockets, and what. The service itself is unchanged. Appends lines of JSON to
 * `BENCH_SOCKET_TRACE` ten times a second.
 */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** `at`: by performance.now() of the service. `what`: see LABELS. */
export type SocketEvent = { at: number; does: 'reads' | 'writes'; what: string[] };

const FLUSH_MS = 100;
/** Longer chunks are no messages of a create. */
const CHUNK_MAX = 64 * 1024;
/** What is noted of a chunk: lines of the protocols of NATS and HTTP, and commands of Redis. */
const LABELS: [pattern: RegExp, label: (found: RegExpMatchArray) => string][] = [
  [/(?:H?MSG|H?PUB) (?:\S+ ){1,3}/g, ([line]) => line],
  [/HTTP\/1\.1 (\d{3})/g, ([, status]) => `answer ${status}`],
  [/rate-limit:v1/g, () => 'rate limit'],
  // Arguments of a write of views: prefix of the lists, checkpoint before, checkpoint after.
  [
    /([a-z-]+:v\d+):list:\r\n\$\d+\r\n\d+\r\n\$\d+\r\n(\d+)/g,
    ([, views, upTo]) => `${views} ${upTo}`,
  ],
];

const file = process.env['BENCH_SOCKET_TRACE'];
if (file === undefined) throw new Error('BENCH_SOCKET_TRACE is not set');
let events: SocketEvent[] = [];

function note(does: SocketEvent['does'], chunk: unknown): void {
  const at = performance.now();
  const text = textOf(chunk);
  if (text === null) return;
  const what = LABELS.flatMap(([pattern, label]) => [...text.matchAll(pattern)].map(label));
  if (what.length > 0) events.push({ at, does, what });
}

function textOf(chunk: unknown): string | null {
  if (typeof chunk === 'string') return chunk.length > CHUNK_MAX ? null : chunk;
  if (!(chunk instanceof Uint8Array) || chunk.length > CHUNK_MAX) return null;
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1');
}

type Passing = (this: Socket, chunk: unknown, ...more: never[]) => boolean;

function watch(name: 'write' | 'push', does: SocketEvent['does']): void {
  const methods = Socket.prototype as unknown as Record<typeof name, Passing>;
  const original = methods[name];
  methods[name] = function noted(chunk, ...more) {
    note(does, chunk);
    return original.call(this, chunk, ...more);
  };
}

watch('write', 'writes');
watch('push', 'reads');
subscribe('http.server.request.start', (message) => {
  const { method, url } = (message as { request: IncomingMessage }).request;
  events.push({ at: performance.now(), does: 'reads', what: [`${method} ${url}`] });
});

function flush(): void {
  if (events.length === 0 || file === undefined) return;
  const lines = events.map((event) => `${JSON.stringify(event)}\n`);
  events = [];
  appendFileSync(file, lines.join(''));
}
setInterval(flush, FLUSH_MS).unref();
