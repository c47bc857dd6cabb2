/**
 * The limit of a create, in a process of its own: no more than the requests to nats-server and
 * Redis that a create needs which is counted, durable and readable when it is answered. Nothing is
 * decided or validated; the messages and answers are the bytes of a session of the service, with
 * another id. `bare-create-apart.ts <settings as JSON>` prints its address.
 *
 * `POST /create/<n>` is answered when the session can be read; the events of n creates are one
 * batch. Without a batch on its way those that wait are the next one. With n = 0 the session's
 * event is stored alone, not counted by one of a ledger. `DELETE /release/<id>`.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { connectNats, connectRedis, published, type RawMessage } from './raw-clients.ts';

export type Example = { subject: string; headers: Record<string, string>; body: string };
export type BareSettings = {
  natsUrl: string;
  redisUrl: string;
  /** Of the session that the examples are of. */
  id: string;
  examples: Record<'requested' | 'ledger' | 'activated' | 'stopRequested', Example>;
  answers: { create: string; release: string };
};

const INBOX = '_INBOX.bare';
const REQUESTS = `${INBOX}.requests`;
const EVENTS = `${INBOX}.events`;
const APPENDS = `${INBOX}.append`;
/** More than a measurement has. */
const MESSAGES = 100_000;
const HOUR_NS = 3_600e9;

const settings = JSON.parse(process.argv[2] ?? '') as BareSettings;
const { examples, answers } = settings;

const redis = await connectRedis(settings.redisUrl);
const nats = await connectNats(settings.natsUrl, INBOX, onMessage);
await makeConsumers();

let ids = 0;
let batches = 0;
let ledgerSequence = 0;
/** The batch on its way, and the creates that wait for it. */
let isAppending = false;
let least = 1;
let waiting: string[] = [];
const open = new Map<string, ServerResponse>();
const sequences = new Map<string, number>();
const acks = new Map<string, string>();

const server = createServer((request, response) => {
  const [, verb, which = ''] = (request.url ?? '').split('/');
  // The body is a constant, too: it has arrived with its head.
  request.resume();
  if (verb === 'create') void create(Number(which), response);
  else release(which, response);
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
);

async function create(together: number, response: ServerResponse): Promise<void> {
  ids += 1;
  const id = `${'x'.repeat(settings.id.length)}${ids}`.slice(-settings.id.length);
  open.set(id, response);
  await redis.ask('INCR', 'rate-limit');
  if (together === 0) return nats.publish(message(examples.requested, id, 0, {}, `${APPENDS}.one`));
  least = together;
  waiting.push(id);
  if (!isAppending && waiting.length >= least) appendWaiting();
}

function appendWaiting(): void {
  const batch = waiting;
  waiting = [];
  isAppending = true;
  batches += 1;
  const size = 2 * batch.length;
  const messages = batch.flatMap((id, at) => {
    const member = (number: number) => ({
      'Nats-Batch-Id': `batch-${batches}`,
      'Nats-Batch-Sequence': `${number}`,
      ...(number === size ? { 'Nats-Batch-Commit': '1' } : {}),
    });
    const ofLedger = at === 0 ? ledgerSequence : null;
    return [
      message(examples.requested, id, 0, member(2 * at + 1)),
      message(examples.ledger, id, ofLedger, member(2 * at + 2), `${APPENDS}.batch`),
    ];
  });
  nats.publish(...messages);
}

/** An example with another id. @param expected its aggregate's last sequence; null: not checked */
function message(
  { subject, headers, body }: Example,
  id: string,
  expected: number | null,
  more: Record<string, string> = {},
  reply = '',
): string {
  const filter = `${subject.slice(0, subject.lastIndexOf('.'))}.>`;
  const fields = {
    ...headers,
    'Nats-Msg-Id': `${id}-${subject.slice(subject.lastIndexOf('.'))}`,
    ...(expected === null
      ? {}
      : {
          'Nats-Expected-Last-Subject-Sequence': `${expected}`,
          'Nats-Expected-Last-Subject-Sequence-Subject': filter,
        }),
    ...more,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const isAnswered = 'Nats-Batch-Commit' in more || !('Nats-Batch-Id' in more);
  return published(
    subject,
    isAnswered ? reply : '',
    `NATS/1.0\r\n${lines.join('')}\r\n`,
    body,
  ).replaceAll(settings.id, id);
}

function onMessage({ subject, reply, text }: RawMessage): void {
  if (subject.startsWith(APPENDS)) return onAppended(subject, text);
  // `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>…`
  const sequence = Number(reply.split('.')[5]);
  const [, id = '', type = ''] = /\.session\.([^.]+)\.([a-z-]+)$/.exec(subject) ?? [];
  // The two readers have the same events: which one it is, is in the acknowledgement's subject.
  if (reply.includes('.requests.')) {
    acks.set(id, reply);
    nats.publish(message(examples.activated, id, sequence, {}, `${APPENDS}.one`));
  } else if (type === 'activated') {
    sequences.set(id, sequence);
    void answer(id, 201, answers.create);
  } else if (type === 'stop-requested') void answer(id, 200, answers.release);
}

function onAppended(subject: string, text: string): void {
  const { error, seq } = JSON.parse(text) as { error?: object; seq: number };
  if (error !== undefined) throw new Error(text);
  if (!subject.endsWith('.batch')) return;
  ledgerSequence = seq;
  isAppending = false;
  if (waiting.length > 0 && waiting.length >= least) appendWaiting();
}

function release(id: string, response: ServerResponse): void {
  open.set(id, response);
  const sequence = sequences.get(id) ?? 0;
  nats.publish(message(examples.stopRequested, id, sequence, {}, `${APPENDS}.one`));
}

/** The view is as long as the answer that is made of it. */
async function answer(id: string, status: number, text: string): Promise<void> {
  const body = text.replaceAll(settings.id, id);
  await redis.ask('HSET', 'views', id, body);
  const response = open.get(id);
  open.delete(id);
  response?.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
  });
  response?.end(body);
  const ack = acks.get(id);
  if (ack !== undefined) nats.publish(published(ack, '', '', '+ACK'));
  acks.delete(id);
}

/** A durable pull consumer of requests, and one in memory of all events of sessions. */
async function makeConsumers(): Promise<void> {
  await using connection = await connectJetStream({ url: settings.natsUrl });
  const { jsm } = connection;
  await jsm.consumers.add(EVENTS_STREAM, {
    durable_name: 'requests',
    ack_policy: 'explicit',
    filter_subject: 'evt.*.session.*.requested',
    max_ack_pending: MESSAGES,
  });
  await jsm.consumers.add(EVENTS_STREAM, {
    name: 'events',
    ack_policy: 'none',
    deliver_policy: 'new',
    filter_subject: 'evt.*.session.>',
    mem_storage: true,
    inactive_threshold: HOUR_NS,
  });
  for (const [name, inbox] of [
    ['requests', REQUESTS],
    ['events', EVENTS],
  ]) {
    const pull = JSON.stringify({ batch: MESSAGES, expires: HOUR_NS });
    nats.publish(
      published(`$JS.API.CONSUMER.MSG.NEXT.${EVENTS_STREAM}.${name}`, `${inbox}`, '', pull),
    );
  }
}
