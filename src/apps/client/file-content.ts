import { NoAnswer, ServiceError } from './failures.ts';
import { nodeModule } from './node-module.ts';
import { pause, pauseAfter, type Requester, type StreamOptions } from './requester.ts';

/** The bytes of one file or segment, to be taken once: by `body`, `read` or `saveTo`. */
export type FileContent = {
  name: string;
  /** Its length. */
  bytes: number;
  /** 64 hexadecimal digits. */
  sha256: string;
  /** Goes on where it was after a lost connection. */
  body: ReadableStream<Uint8Array>;
  /** All of it in memory. */
  read(): Promise<Uint8Array<ArrayBuffer>>;
  /** Writes it to a file of this machine; in Node alone. What is not whole is removed. */
  saveTo(path: string): Promise<void>;
};

/** Connections in a row that brought nothing. */
const TRIES_MAX = 10;
/** A connection that brings nothing for so long counts as dead. */
const SILENCE_MS = 45_000;
const CHANGED = 'The file was replaced while it was read.';

/**
 * The content at a path of the API, from its first answer on.
 * @throws ServiceError, NoAnswer, or the reason of the aborted signal
 */
export async function openContent(
  requester: Requester,
  path: string,
  name: string,
  options: StreamOptions = {},
): Promise<FileContent> {
  const reader = await openReader(requester, path, options);
  const body = streamOf(reader.chunks);
  return {
    name,
    bytes: reader.bytes,
    sha256: reader.etag.replaceAll('"', ''),
    body,
    read: async () => new Uint8Array(await new Response(body).arrayBuffer()),
    saveTo: (to) => saveTo(body, to),
  };
}

/**
 * Writes a stream to a file of this machine, beside its place until it is whole. A failure cancels
 * the stream, whose connection would stay open.
 */
export async function saveTo(body: ReadableStream<Uint8Array>, path: string): Promise<void> {
  const { open, rename, rm } = nodeModule('node:fs/promises');
  const part = `${path}.${crypto.randomUUID()}.part`;
  const file = await open(part, 'wx').catch(async (error: unknown) => {
    await body.cancel(error).catch(() => undefined);
    throw error;
  });
  try {
    for await (const chunk of iterate(body)) await file.writeFile(chunk);
    await file.close();
    await rename(part, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(part, { force: true });
    throw error;
  }
}

/** Not every browser iterates over a stream. */
async function* iterate(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export function streamOf(
  chunks: AsyncGenerator<Uint8Array, void, void>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await chunks.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return();
    },
  });
}

/** Opens the first connection; `chunks` opens further ones, from where the one before broke off. */
async function openReader(requester: Requester, path: string, options: StreamOptions) {
  const ask = (at: number, etag: string): Promise<Connection> =>
    openConnection(requester, path, options.signal, at, etag);
  const first = await repeat(options.signal, () => ask(0, ''));
  const { etag } = first;
  const bytes = first.left;

  async function* chunks(): AsyncGenerator<Uint8Array, void, void> {
    let at = 0;
    let connection = first;
    for (let failures = 0; ;) {
      const before = at;
      // Recordings are answered whole whatever range is asked for.
      let known = connection.isWhole ? at : 0;
      try {
        for await (const chunk of connection.chunks()) {
          const more = chunk.subarray(known);
          known -= chunk.length - more.length;
          at += more.length;
          if (more.length > 0) yield more;
        }
        if (at >= bytes) return;
        throw new NoAnswer(`${path}: the connection ended after ${at} of ${bytes} bytes`);
      } catch (error) {
        options.signal?.throwIfAborted();
        failures = at > before ? 1 : failures + 1;
        const afterMs =
          failures < TRIES_MAX ? pauseAfter(failureOf(error, path), failures - 1) : null;
        if (afterMs === null) throw error;
        await pause(afterMs, options.signal);
      }
      connection = await repeat(options.signal, () => ask(at, etag));
      if (connection.etag !== etag) throw new Error(CHANGED);
    }
  }
  return { bytes, etag, chunks: chunks() };
}

type Connection = {
  etag: string;
  /** The service began at the first byte, whatever it was asked for. */
  isWhole: boolean;
  /** Bytes that are to come. */
  left: number;
  chunks(): AsyncGenerator<Uint8Array, void, void>;
};

async function openConnection(
  requester: Requester,
  path: string,
  signal: AbortSignal | undefined,
  at: number,
  etag: string,
): Promise<Connection> {
  const cut = new AbortController();
  const silent = () => cut.abort(new Error(`nothing was received for ${SILENCE_MS} ms`));
  let timer = setTimeout(silent, SILENCE_MS);
  const either = signal === undefined ? cut.signal : AbortSignal.any([cut.signal, signal]);
  // A compressed answer has no bytes to go on from.
  const from = at === 0 ? {} : { range: `bytes=${at}-`, 'if-range': etag };
  const headers = { 'accept-encoding': 'identity', ...from };
  try {
    const response = await requester.open({ method: 'GET', path, headers, signal: either });
    clearTimeout(timer);
    return {
      etag: response.headers.get('etag') ?? '',
      isWhole: response.status !== 206,
      left: Number(response.headers.get('content-length') ?? 0),
      async *chunks() {
        if (response.body === null) return;
        timer = setTimeout(silent, SILENCE_MS);
        try {
          for await (const chunk of iterate(response.body)) {
            // The reader may take its time.
            clearTimeout(timer);
            yield chunk;
            timer = setTimeout(silent, SILENCE_MS);
          }
        } finally {
          clearTimeout(timer);
          cut.abort();
        }
      },
    };
  } catch (error) {
    clearTimeout(timer);
    throw failureOf(error, path);
  }
}

function failureOf(error: unknown, path: string): unknown {
  if (error instanceof ServiceError || error instanceof NoAnswer) return error;
  return new NoAnswer(`GET ${path}: ${String(error)}`, { cause: error });
}

/** Repeats what fails for a passing reason. */
async function repeat<Answer>(
  signal: AbortSignal | undefined,
  attempt: () => Promise<Answer>,
): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      const afterMs = tries < TRIES_MAX ? pauseAfter(error, tries - 1) : null;
      if (afterMs === null) throw error;
      await pause(afterMs, signal);
    }
  }
}
