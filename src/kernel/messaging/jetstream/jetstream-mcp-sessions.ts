import { setTimeout as delay } from 'node:timers/promises';
import type { StoredMsg } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { isId, MCP_BUCKET, MCP_STREAM } from '#events/subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import {
  isOutage,
  isWrongLastSequence,
  requestWithRetry,
} from '#src/kernel/event-store/jetstream/request.ts';
import { CHANGES_MAX, type McpSession, type McpSessions } from '../mcp-sessions.ts';

/** The subjects of a bucket, by the convention of NATS key-value buckets. */
const PREFIX = `$KV.${MCP_BUCKET}.`;
const ANSWER_MS = 2_000;
/** Sessions of one request; the server sends at most 1,024. */
const BATCH = 500;
/** A key that is no session: its message's time is the server's present time. */
const CLOCK = 'clock';
/** A replica may have a new session some milliseconds later than its leader. */
const REPLICA_MS = 200;

/**
 * MCP sessions as keys of a bucket without a lifetime; the timekeeper removes those that ended.
 * @throws Unavailable('event-log')
 */
export async function createJetStreamMcpSessions(
  connection: JetStreamConnection,
): Promise<McpSessions> {
  const { js, jsm, replicas } = connection;
  const ask = <Answer>(request: () => Promise<Answer>) =>
    requestWithRetry(connection, ANSWER_MS, request);
  const bucket = await ask(() => new Kvm(js).create(MCP_BUCKET, { history: 1, replicas }));

  async function find(id: string) {
    const entry = await ask(() => bucket.get(keyOf(id)));
    if (entry === null || entry.operation !== 'PUT') return null;
    return { session: entry.json<McpSession>(), revision: entry.revision };
  }
  /** False: somebody else has written since the revision; 0: there was none. */
  async function write(id: string, session: McpSession, revision: number): Promise<boolean> {
    const text = JSON.stringify(session);
    try {
      // Sent once: a repeat after a lost answer would conflict with itself.
      await connection.whileConnected(
        revision === 0 ? bucket.create(id, text) : bucket.update(id, text, revision),
      );
      return true;
    } catch (error) {
      if (isWrongLastSequence(error)) return false;
      throw isOutage(error) ? new Unavailable('event-log', error) : error;
    }
  }
  return {
    async create(id, session) {
      if (!(await write(keyOf(id), session, 0))) throw new RangeError(`MCP session ${id} exists`);
    },

    async get(id) {
      const found = await find(id);
      if (found !== null) return found.session;
      await delay(REPLICA_MS);
      return (await find(id))?.session ?? null;
    },

    async change(id, next) {
      for (let tries = 0; tries < CHANGES_MAX; tries += 1) {
        const found = await find(id);
        const changed = found === null ? null : next(found.session, found.revision);
        if (found === null || changed === null) return null;
        if (await write(id, changed, found.revision)) return changed;
        await delay(Math.random() * REPLICA_MS);
      }
      throw new Unavailable('event-log', new Error(`MCP session ${id} changes all the time`));
    },

    async remove(id) {
      // Purged, not deleted: a delete leaves a marker for ever.
      await ask(() => jsm.streams.purge(MCP_STREAM, { filter: PREFIX + keyOf(id) }));
    },

    async all() {
      const query = { subjects_filter: `${PREFIX}*`, deleted_details: false, offset: 0 };
      const { state } = await ask(() => jsm.streams.info(MCP_STREAM, query));
      const subjects = Object.keys(state.subjects ?? {}).filter((one) => one !== PREFIX + CLOCK);
      if (subjects.length === 0) return [];
      // Read with the sessions, so that it is written only where there are some.
      await ask(() => bucket.put(CLOCK, ''));
      subjects.push(PREFIX + CLOCK);
      const messages: StoredMsg[] = [];
      for (let from = 0; from < subjects.length; from += BATCH) {
        const some = subjects.slice(from, from + BATCH);
        messages.push(...(await ask(() => lastOf(connection, some))));
      }
      const now = messages.find(({ subject }) => subject === PREFIX + CLOCK)?.time.getTime();
      if (now === undefined) throw new Unavailable('event-log', new Error('no time of the server'));
      return messages.flatMap(({ subject, seq, time, data }) => {
        const id = subject.slice(PREFIX.length);
        if (id === CLOCK || data.length === 0) return [];
        const session = JSON.parse(new TextDecoder().decode(data)) as McpSession;
        return [{ ...session, id, revision: seq, ageMs: Math.max(0, now - time.getTime()) }];
      });
    },
  };
}

async function lastOf({ jsm }: JetStreamConnection, subjects: string[]): Promise<StoredMsg[]> {
  const messages: StoredMsg[] = [];
  const asked = { multi_last: subjects };
  for await (const message of await jsm.direct.getLastMessagesFor(MCP_STREAM, asked))
    messages.push(message);
  return messages;
}

function keyOf(id: string): string {
  if (!isId(id) || id === CLOCK) throw new RangeError(`not an id of an MCP session: ${id}`);
  return id;
}
