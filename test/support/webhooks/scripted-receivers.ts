import { expect } from 'vitest';
import { sleep } from '#src/kernel/async/sleep.ts';
import { resultOf, type Send, type SendResult } from '#src/features/webhooks/sender/send.ts';
import type { startApp } from '#test/support/service/api-in-memory.ts';
import { verified, type Received } from './receiver.ts';

const ADMIN = { authorization: 'Bearer admin' };
/** Between a delivery and its answer. */
const ANSWER_MS = 5;
const NOTHING = { status: null, excerpt: null, retryAfterMs: null };

/** The status that a delivery is answered with; null: it is never answered. */
export type Script = (got: Received, count: number) => number | null;

type Scripted = { received: Received[]; secret: string; script: Script };

/** Receivers in memory: what a sender sends with `send` arrives at the one with its URL. */
export function createScriptedReceivers(
  app: Pick<Awaited<ReturnType<typeof startApp>>, 'request'>,
) {
  const receivers = new Map<string, Scripted>();
  const underWay = { now: 0, most: 0 };

  async function answered({ url, body, headers }: Parameters<Send>[0]): Promise<number | null> {
    const receiver = receivers.get(url);
    if (receiver === undefined) throw new Error(`no receiver at ${url}`);
    const got = verified(receiver.secret, body, headers, new URL(url).pathname);
    const count = receiver.received.filter(({ id }) => id === got.id).length;
    receiver.received.push(got);
    return receiver.script(got, count);
  }
  const send: Send = async (outgoing, { signal, timeoutMs }) => {
    underWay.most = Math.max(underWay.most, (underWay.now += 1));
    try {
      await sleep(ANSWER_MS, signal);
      const status = await answered(outgoing);
      if (status !== null) return { ...NOTHING, ...resultOf(status), status };
      await sleep(timeoutMs, signal);
      signal.throwIfAborted();
      return { ...NOTHING, outcome: 'failed', reason: 'no answer' } satisfies SendResult;
    } finally {
      underWay.now -= 1;
    }
  };

  /** A webhook with its receiver, which answers 204 unless the script says otherwise. */
  async function open(fields: object = {}, script: Script = () => 204) {
    const url = `https://hooks.example/${receivers.size}`;
    const asked = { url, ...fields };
    const { status, body } = await app.request('POST', '/api/webhooks', asked, ADMIN);
    expect(status).toBe(201);
    const receiver = { received: [] as Received[], secret: body.secret as string, script };
    receivers.set(url, receiver);
    const path = `/api/webhooks/${body.id as string}`;
    const remove = () => app.request('DELETE', path, undefined, ADMIN);
    return {
      url,
      id: body.id as string,
      path,
      received: receiver.received,
      secret: receiver.secret,
      setSecret: (next: string) => void (receiver.secret = next),
      get: async () => (await app.request('GET', path, undefined, ADMIN)).body,
      change: (change: object) => app.request('PATCH', path, change, ADMIN),
      remove,
      deliveries: async () =>
        (await app.request('GET', `${path}/deliveries?limit=100`, undefined, ADMIN)).body
          .deliveries,
      async [Symbol.asyncDispose]() {
        await remove();
      },
    };
  }
  return { send, open, underWay };
}
