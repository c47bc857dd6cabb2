import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { untilAborted } from '../body.ts';
import { requireKey, requirePrefix, requireRange, withinObject } from '../object-key.ts';
import { PUT_LEASE_MS, type ObjectStore, type StoredObject } from '../object-store.ts';
import { PUT_BYTES, putObject } from './put.ts';
import { readChunks } from './read.ts';
import { removeLeftovers, removeObject, removeObjects } from './remove.ts';
import { ANSWER_MS, createObjectRequests, type Head } from './requests.ts';

/** Heads that a list asks for at once. */
const AT_ONCE = 8;

/** `leaseMs`: how long a put that stores nothing may go on. */
type JetStreamObjectOptions = { now?: () => number; answerMs?: number; leaseMs?: number };

/**
 * Keeps objects in the stream OBJECTS: the bytes as chunks of one put, and a head that names the
 * put. The connection is the caller's to close.
 */
export function createJetStreamObjectStore(
  connection: JetStreamConnection,
  { now = Date.now, answerMs = ANSWER_MS, leaseMs = PUT_LEASE_MS }: JetStreamObjectOptions = {},
): ObjectStore {
  const requests = createObjectRequests(connection, answerMs);
  const parts = { connection, requests, now };

  return {
    putBytes: PUT_BYTES,
    async put(key, body, options = {}) {
      requireKey(key);
      return putObject(parts, key, body, options);
    },
    async get(key, range, { signal } = {}) {
      requireKey(key);
      requireRange(range);
      const head = await requests.head(key);
      if (head === null) return null;
      const part = withinObject(range, head.bytes);
      const body = untilAborted(readChunks(requests, key, head, part), signal);
      return { object: described(key, head), body };
    },
    async head(key) {
      requireKey(key);
      const head = await requests.head(key);
      return head === null ? null : described(key, head);
    },
    async *list(prefix) {
      requirePrefix(prefix);
      const keys = await requests.keysUnder(prefix);
      for (let at = 0; at < keys.length; at += AT_ONCE) {
        const some = keys.slice(at, at + AT_ONCE);
        const heads = await Promise.all(some.map((key) => requests.head(key)));
        for (const [index, head] of heads.entries())
          if (head !== null) yield described(some[index] ?? '', head);
      }
    },
    async remove(key, options) {
      requireKey(key);
      await removeObject(requests, key, options);
    },
    async removeAll(prefix, options) {
      requirePrefix(prefix);
      return removeObjects(requests, prefix, options);
    },
    removeLeftovers: () => removeLeftovers(requests, { now, leaseMs }),
    use: () => requests.use(),
    async [Symbol.asyncDispose]() {},
  };
}

function described(key: string, { bytes, sha256, storedAt }: Head): StoredObject {
  return { key, bytes, sha256, storedAt };
}
