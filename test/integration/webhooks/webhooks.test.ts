import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWebhookSender } from '#src/features/webhooks/sender/webhook-sender.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhook as openWebhookOf } from '#test/support/webhooks/open-webhook.ts';
import { startReceiver, type Answer, type Received } from '#test/support/webhooks/receiver.ts';

type App = Awaited<ReturnType<typeof startApp>>;
let app: App;
const counted: string[] = [];
/** Ends the role; the next `send` starts it again. */
let sender: AsyncDisposable | null = null;

/** More attempts than a test waits for. */
const MANY = Array.from({ length: 10_000 }, () => 20);

function send(pauses: readonly number[] = MANY, eventStore = app.context.eventStore): void {
  sender = startWebhookSender({
    ...{
      context: { ...app.context, eventStore },
      records: app.webhooks.records,
      leases: app.leases,
    },
    ...{ secretsOf: app.webhooks.secretsOf, rules: app.webhooks.rules },
    pauses,
    // For what hangs: no answer is late on a busy machine.
    timeoutMs: 120_000,
    count: (outcome) => void counted.push(outcome),
    log: pino({ level: 'silent' }),
  });
}
beforeAll(async () => {
  app = await startApp(undefined, { allowsPrivateWebhooks: true });
  send();
});
afterAll(async () => {
  await sender?.[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

const ADMIN = { authorization: 'Bearer admin' };

const openWebhook = (fields?: object, answer?: Answer) => openWebhookOf(app, fields, answer);
async function create(fields: object = {}): Promise<string> {
  const { status, body } = await app.request('POST', '/api/sessions', fields);
  expect(status).toBe(201);
  return body.id as string;
}
const stop = async (id: string) => app.request('DELETE', `/api/sessions/${id}`);

/** The types of a session's events that a receiver got, in their order. */
function typesOf(received: readonly { type: string; data: { subject: string } }[], id: string) {
  return received.filter(({ data }) => data.subject === id).map(({ type }) => type);
}

test('events arrive signed, in order, with the id of the event, and without what is internal', async () => {
  await using hook = await openWebhook();
  const id = await create();
  await stop(id);
  await eventually(() => typesOf(hook.received, id).includes('session.stopped'), 'it arrives');
  const { body } = await app.request('GET', `/api/events?format=json&after=0&limit=500`);
  const known = (body.events as { id: string; type: string; subject: string }[]).filter(
    ({ subject }) => subject === id,
  );
  const got = hook.received.filter(({ data }) => data.subject === id);
  expect(got.map((one) => one.id)).toEqual(known.map((one) => one.id));
  expect(got.map((one) => one.data)).toEqual(known);
  expect(hook.refused).toEqual([]);
  // A webhook of the organization is in its own events, but its URL is not.
  const added = hook.received.map((one) => one.body).join('\n');
  expect(added).not.toContain('/hook');
  await eventually(async () => {
    const { last_delivery: last, failing_since: since } = await hook.get();
    return last !== null && since === null;
  }, 'progress is stored');
});

test('types and labels select events', async () => {
  await using hook = await openWebhook({ types: ['session.stopped'], labels: { team: 'web' } });
  const [other, ours] = [await create(), await create({ labels: { team: 'web' } })];
  await stop(other);
  await stop(ours);
  await eventually(() => hook.received.length === 1, 'one event arrives');
  expect(hook.received.map(({ type, data }) => [type, data.subject])).toEqual([
    ['session.stopped', ours],
  ]);
});

test('a failed delivery is repeated with the same id and holds up its own session alone', async () => {
  const [first, second] = [await create(), await create()];
  await using hook = await openWebhook({ types: ['session.stop-requested', 'session.stopped'] });
  let isBroken = true;
  hook.answer(({ data }, _, reply) => {
    reply.writeHead(isBroken && data.subject === first ? 500 : 200).end('a page of an error');
  });
  await stop(first);
  await eventually(() => hook.received.length >= 2, 'it is repeated');
  await stop(second);
  await eventually(() => typesOf(hook.received, second).length === 2, 'the other one passes');
  expect(new Set(typesOf(hook.received, first))).toEqual(new Set(['session.stop-requested']));
  expect((await hook.get()).failing_since).not.toBeNull();
  isBroken = false;
  await eventually(() => typesOf(hook.received, first).includes('session.stopped'), 'it goes on');
  const ids = hook.received.filter(({ data }) => data.subject === first).map(({ id }) => id);
  expect(new Set(ids).size).toBe(2);
  await eventually(async () => (await hook.get()).failing_since === null, 'it is well again');
  await eventually(async () => (await hook.deliveries()).length === 4, 'all are listed');
  const failed = await app.request(
    'GET',
    `${hook.path}/deliveries/${ids[0] ?? ''}`,
    undefined,
    ADMIN,
  );
  expect(failed.body.attempts[0]).toMatchObject({
    ...{ attempt: 1, outcome: 'failed', status: 500, reason: 'answered 500' },
    excerpt: 'a page of an error',
  });
  expect(failed.body.attempts.at(-1)).toMatchObject({ outcome: 'delivered', status: 200 });
  expect(failed.body.body).toBe(hook.received.find(({ id }) => id === ids[0])?.body);
});

describe('answers', () => {
  test('one without end is taken by its status, and a redirect is a failure', async () => {
    const other = await startReceiver(() => '');
    await using _ = other;
    const id = await create();
    const types = ['session.stopped'];
    await using endless = await openWebhook({ types }, (_got, _count, reply) => {
      reply.writeHead(200);
      const write = () => {
        while (!reply.destroyed && reply.write(Buffer.alloc(65_536, 'x')));
        if (!reply.destroyed) reply.once('drain', write);
      };
      write();
    });
    await using leading = await openWebhook({ types }, (_got, _count, reply) => {
      reply.writeHead(307, { location: other.url }).end();
    });
    await stop(id);
    const last = async (hook: typeof endless) => (await hook.deliveries())[0]?.last ?? null;
    await eventually(async () => (await last(endless)) !== null, 'the endless one is taken');
    expect(await last(endless)).toMatchObject({ outcome: 'delivered', status: 200 });
    expect((await last(endless)).excerpt).toHaveLength(1_024);
    await eventually(async () => (await last(leading)) !== null, 'the redirect is seen');
    expect((await last(leading)).reason).toBe('answered 307: redirects are not followed');
    expect(other.received.length + other.refused.length).toBe(0);
  });

  test('410 disables the webhook at once, with an event; enabled, it goes on where it stopped', async () => {
    const id = await create();
    await using watching = await openWebhook({ types: ['organization.webhook-disabled'] });
    let isGone = true;
    await using hook = await openWebhook({ types: ['session.stopped'] }, (_got, _count, reply) => {
      reply.writeHead(isGone ? 410 : 200).end();
    });
    await stop(id);
    await eventually(async () => (await hook.get()).disabled !== null, 'it is disabled');
    expect((await hook.get()).disabled).toMatchObject({
      ...{ reason: 'gone', detail: 'answered 410 Gone' },
    });
    await eventually(() => watching.received.length === 1, 'an event says so');
    isGone = false;
    const enabled = await app.request('PATCH', hook.path, { disabled: false }, ADMIN);
    expect([enabled.status, enabled.body.disabled]).toEqual([200, null]);
    await eventually(() => hook.received.length === 2, 'the event arrives after all');
    expect(new Set(hook.received.map((one) => one.id)).size).toBe(1);
  });

  test('a webhook that is given up during a read of the event store is sent nothing more', async () => {
    await sender?.[Symbol.asyncDispose]();
    const { eventStore } = app.context;
    const [id, other] = [await create(), await create()];
    let [isAsked, isReading] = [false, false];
    await using hook = await openWebhook({ types: ['session.stopped'] }, (_got, _count, reply) => {
      isAsked = true;
      // The answer comes during a read, which another session's event makes begin.
      void app.request('PATCH', `/api/sessions/${other}`, { session_name: 'another' });
      void eventually(() => isReading, 'a read has begun').then(() => reply.writeHead(410).end());
    });
    send(MANY, {
      ...eventStore,
      async lastSequence() {
        isReading = isAsked;
        if (isReading)
          await eventually(async () => (await hook.deliveries()).length > 0, 'it is given up');
        return eventStore.lastSequence();
      },
    });
    await stop(id);
    await eventually(async () => (await hook.deliveries()).length > 0, 'the attempt is kept');
    // What the worker begins after its read ends with it.
    await sender?.[Symbol.asyncDispose]();
    expect(isReading).toBe(true);
    expect(hook.received).toHaveLength(1);
    expect((await hook.get()).disabled).toMatchObject({ reason: 'gone' });
    send();
  });

  test('a webhook is disabled when no pause is left', async () => {
    await sender?.[Symbol.asyncDispose]();
    send([20, 20, 20]);
    const id = await create();
    await using hook = await openWebhook({ types: ['session.stopped'] }, (_got, _count, reply) => {
      reply.writeHead(503).end();
    });
    await stop(id);
    await eventually(async () => (await hook.get()).disabled !== null, 'it is disabled');
    expect((await hook.get()).disabled).toMatchObject({
      ...{ reason: 'failing', detail: 'answered 503' },
    });
    expect(hook.received).toHaveLength(4);
    await sender?.[Symbol.asyncDispose]();
    send();
  });

  test('Retry-After makes a pause longer', async () => {
    const id = await create();
    await using hook = await openWebhook({ types: ['session.stopped'] }, (_got, _count, reply) => {
      reply.writeHead(503, { 'retry-after': '7200' }).end();
    });
    await stop(id);
    const [{ last }] = await eventually(async () => {
      const found = await hook.deliveries();
      return found.length > 0 && found;
    }, 'the attempt is kept');
    expect(Date.parse(last.next_at) - Date.parse(last.at)).toBeGreaterThanOrEqual(7_200_000);
  });
});

test('a rotated secret signs at once, and the old one for a day beside it', async () => {
  await using hook = await openWebhook({ types: ['session.stopped'] });
  const rotated = await app.request('POST', `${hook.path}/rotate-secret`, {}, ADMIN);
  expect(rotated.status).toBe(200);
  expect(rotated.body.secret).not.toBe(hook.secret);
  // The receiver still has the old one.
  await stop(await create());
  await eventually(() => hook.received.length === 1, 'the old secret verifies');
  hook.setSecret(rotated.body.secret as string);
  await stop(await create());
  await eventually(() => hook.received.length === 2, 'the new secret verifies');
  const [{ body, headers }] = hook.received as [Received];
  expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
  // The specification's own check of what is late, or changed.
  const verifier = new Webhook(rotated.body.secret as string);
  expect(() => verifier.verify(`${body} `, headers)).toThrow(/signature/);
  const late = String(Number(headers['webhook-timestamp']) - 3_600);
  expect(() => verifier.verify(body, { ...headers, 'webhook-timestamp': late })).toThrow(/old/);
});

test('events are sent again from a sequence on, with the ids that they had', async () => {
  await using hook = await openWebhook({ types: ['session.stopped'] });
  const [first, second] = [await create(), await create()];
  await stop(first);
  await stop(second);
  await eventually(() => hook.received.length === 2, 'both arrive');
  const from = hook.received[1]?.data.sequence ?? 0;
  const asked = await app.request('POST', `${hook.path}/replay`, { from }, ADMIN);
  expect(asked.status).toBe(202);
  await eventually(() => hook.received.length === 3, 'the second one arrives again');
  expect(hook.received[2]?.id).toBe(hook.received[1]?.id);
  const ahead = await app.request('POST', `${hook.path}/replay`, { from: 9_999_999 }, ADMIN);
  expect([ahead.status, ahead.body.error]).toEqual([400, 'INVALID_REQUEST']);
});

test('what happens while no process sends is sent by the next one, once', async () => {
  await using hook = await openWebhook({ types: ['session.stopped'] });
  await stop(await create());
  await eventually(() => hook.received.length === 1, 'it arrives');
  // A process that ends before it has the answer leaves the delivery to be repeated.
  await eventually(async () => (await hook.get()).last_delivery !== null, 'its answer is stored');
  await sender?.[Symbol.asyncDispose]();
  await stop(await create());
  send();
  await eventually(() => hook.received.length === 2, 'the next process sends it');
  expect(new Set(hook.received.map(({ id }) => id)).size).toBe(2);
});

test('a slow endpoint holds up no other', async () => {
  await using slow = await openWebhook({ types: ['session.stopped'] }, () => undefined);
  await using quick = await openWebhook({ types: ['session.stopped'] });
  const ids = await Promise.all(Array.from({ length: 6 }, () => create()));
  await Promise.all(ids.map(stop));
  await eventually(() => quick.received.length === 6, 'all arrive at the other');
  expect(slow.received.length).toBeLessThanOrEqual(8);
});
