import type { Msg } from '@nats-io/transport-node';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';

/** How large the pieces are that the server sends and takes. */
export const CHUNK_BYTES = 128 * 1024;
const REQUEST_MS = 30_000;
/** The server itself gives up a receiver that says nothing for some seconds. */
const SILENCE_MS = 60_000;
/** Once it has all, the server indexes it: as long as that takes for a hundred million events. */
const FINISH_MS = 20 * 60_000;

type Answer = { error?: { description: string }; deliver_subject?: string } & Partial<Snapshotted>;
type Snapshotted = { config: Record<string, unknown>; state: Record<string, unknown> };

/**
 * Has the server write down a stream as it is now, sequences and times included, in its own format;
 * appends go on meanwhile. @throws Error where it breaks off: what was written then is of no use
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
    trouble ??= `the snapshot of ${stream} broke off: ${why}`;
    chunks.unsubscribe();
  };
  // Of what was under way then, some is lost.
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
 * Has the server make a stream of what `takeSnapshot` wrote. @throws Error where there is a stream
 * of that name, or it does not take what it is given
 */
export async function restoreSnapshot(
  { nc }: JetStreamConnection,
  { name, ...saved }: Snapshotted & { name: string },
  chunks: AsyncIterable<Uint8Array>,
): Promise<Snapshotted> {
  const what = `the restoring of ${name}`;
  const begin = await nc.request(`$JS.API.STREAM.RESTORE.${name}`, JSON.stringify(saved), {
    timeout: REQUEST_MS,
  });
  const { deliver_subject: target } = answerIn(begin, what);
  if (target === undefined) throw new Error(`${what}: the server named no subject for the data`);
  for await (const chunk of chunks) {
    const taken = await nc.request(target, chunk, { timeout: SILENCE_MS });
    // It says something only where it will have no more.
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
