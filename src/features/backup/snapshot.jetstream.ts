import type { Msg } from '@nats-io/transport-node';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';

/** Size of the chunks of a snapshot, in both directions. */
export const CHUNK_BYTES = 128 * 1024;
const REQUEST_MS = 30_000;
/** The server itself drops a receiver that acknowledges nothing for some seconds. */
const SILENCE_MS = 60_000;
/** After the last chunk the server builds its index; enough for a hundred million events. */
const FINISH_MS = 20 * 60_000;

type Answer = { error?: { description: string }; deliver_subject?: string } & Partial<Snapshotted>;
type Snapshotted = { config: Record<string, unknown>; state: Record<string, unknown> };

/**
 * Writes a snapshot of a stream in the server's own format, sequences and times included. Appends
 * continue meanwhile. @throws Error if the snapshot is interrupted: the chunks so far are useless
 */
export async function takeSnapshot(
  connection: JetStreamConnection,
  stream: string,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<Snapshotted> {
  const { nc } = connection;
  const deliver = connection.newInbox();
  const chunks = nc.subscribe(deliver);
  let trouble: string | null = null;
  const giveUp = (why: string) => {
    trouble ??= `the snapshot of ${stream} failed: ${why}`;
    chunks.unsubscribe();
  };
  // Chunks that were in transit at a reconnect may be lost.
  const forget = connection.onReconnect(() => giveUp('the connection was lost'));
  const silence = setTimeout(() => giveUp('the server sent nothing for a minute'), SILENCE_MS);
  try {
    const request = { deliver_subject: deliver, no_consumers: true, chunk_size: CHUNK_BYTES };
    const subject = `$JS.API.STREAM.SNAPSHOT.${stream}`;
    const reply = await nc.request(subject, JSON.stringify(request), { timeout: REQUEST_MS });
    const answer = answerIn(reply, `the snapshot of ${stream}`);
    for await (const message of chunks) {
      if (message.data.length === 0) {
        const { code = 0, description = '' } = message.headers ?? {};
        if (code >= 400) giveUp(`${code} ${description}`);
        break;
      }
      silence.refresh();
      await write(message.data);
      message.respond();
    }
    if (trouble !== null) throw new Error(trouble);
    return snapshotted(answer);
  } finally {
    clearTimeout(silence);
    forget();
    chunks.unsubscribe();
  }
}

/**
 * Creates a stream from what `takeSnapshot` wrote. @throws Error if a stream of that name exists,
 * or the server rejects the data
 */
export async function restoreSnapshot(
  { nc }: JetStreamConnection,
  { name, ...saved }: Snapshotted & { name: string },
  chunks: AsyncIterable<Uint8Array>,
): Promise<Snapshotted> {
  const what = `the restore of ${name}`;
  const begin = await nc.request(`$JS.API.STREAM.RESTORE.${name}`, JSON.stringify(saved), {
    timeout: REQUEST_MS,
  });
  const { deliver_subject: target } = answerIn(begin, what);
  if (target === undefined) throw new Error(`${what}: the server named no subject for the data`);
  for await (const chunk of chunks) {
    const taken = await nc.request(target, chunk, { timeout: SILENCE_MS });
    // The server's reply to a chunk is empty unless it rejects the data.
    if (taken.data.length > 0) answerIn(taken, what);
  }
  const end = await nc.request(target, '', { timeout: FINISH_MS });
  return snapshotted(answerIn(end, what));
}

function answerIn(message: Msg, what: string): Answer {
  const answer = message.json<Answer>();
  if (answer.error !== undefined) throw new Error(`${what}: ${answer.error.description}`);
  return answer;
}

function snapshotted({ config = {}, state = {} }: Answer): Snapshotted {
  return { config, state };
}
