import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { firstReply } from '../cdp-client.ts';
import { createSession, stopSession, untilIdle } from '../sessions.ts';
import { row, summarize, timed, type Verdict } from '../samples.ts';
import { measureAppends } from './append-cost.ts';
import type { SocketEvent } from './socket-trace.ts';

/** A session, the sequence of its event received last, and where its last append is answered. */
type About = { id: string; sequence: number; inbox: string };

/**
 * A step of a create or a release: what has to be seen on the service's sockets after the step
 * before, all of the labels, in any order.
 */
type Step = {
  name: string;
  does: SocketEvent['does'];
  labels: ((label: string, about: About) => boolean)[];
};

const answered = (status: number): Step => ({
  name: 'answered',
  does: 'writes',
  labels: [(label) => label === `answer ${status}`],
});
const sent = (type: string): Step => ({
  name: `${type} sent`,
  does: 'writes',
  labels: [(label, { id }) => /^H?PUB evt/.test(label) && label.includes(`.${id}.${type} `)],
});
/** By the reader of this name, which is in the subject of the delivery's acknowledgement. */
const delivered = (name: string, type: string, reader: string): Step => ({
  name,
  does: 'reads',
  labels: [
    (label, { id }) =>
      /^H?MSG evt/.test(label) && label.includes(`.${id}.${type} `) && label.includes(reader),
  ],
});
const ofViews = ['session-view', 'organization-sessions'].map(
  (views) =>
    (label: string, { sequence }: About) =>
      label.startsWith(`${views}:`) && Number(label.split(' ')[1]) >= sequence,
);
const acknowledged: Step = {
  name: 'append acknowledged',
  does: 'reads',
  labels: [(label, { inbox }) => inbox !== '' && label.includes(inbox)],
};
const folded: Step = { name: 'views sent to Redis', does: 'writes', labels: ofViews };
const count: Step = {
  name: 'rate limit and room asked of Redis',
  does: 'writes',
  labels: [(label) => label === 'rate limit'],
};

const CREATE: Step[] = [
  count,
  sent('requested'),
  acknowledged,
  delivered('request pulled: the batch is stored', 'requested', '.provisioner.'),
  sent('activated'),
  delivered('activated received', 'activated', '.follow_'),
  folded,
  answered(201),
];
const STOP = 'stop-requested';
const RELEASE: Step[] = [
  count,
  sent(STOP),
  delivered(`${STOP} received`, STOP, '.follow_'),
  folded,
  answered(200),
];

/** The times of one life by the client, in milliseconds. */
type Life = { id: string; create: number; reply: number; release: number };

/**
 * Where the time of a warm create and of a release goes: the medians between what passes the
 * service's sockets, and what an append costs by itself. Tracing adds some 0.2 ms to a create; the
 * figures that have goals are those of `lifecycle`.
 */
export async function traceCreates(
  print: (line?: string) => void,
  { rounds, env }: { rounds: number; env: Record<string, string> },
): Promise<Verdict[]> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-trace-'));
  const file = join(folder, 'sockets.jsonl');
  const importing = `--import ${new URL('socket-trace.ts', import.meta.url).href}`;
  const traced = { NODE_OPTIONS: importing, BENCH_SOCKET_TRACE: file };
  const pool = { POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1' };
  const { one, two } = await measureAppends(rounds);
  try {
    await using service = await startService({ ...env, ...pool, ...traced });
    const all: Life[] = [];
    for (let round = 0; round < rounds; round += 1) all.push(await live(service));
    const events = await readTrace(file, all.at(-1)?.id ?? '');
    // The first quarter warms up.
    const lives = all.slice(Math.floor(rounds / 4));
    const of = (part: 'create' | 'reply' | 'release') => summarize(lives.map((life) => life[part]));
    print(row('create: POST → answer', of('create')));
    printSteps(
      print,
      CREATE,
      lives.map(({ id }) => timesOf(events, id, 'POST /api/', CREATE)),
    );
    print(row('create: POST → first CDP reply', of('reply')));
    print(row('release: DELETE → answer', of('release')));
    printSteps(
      print,
      RELEASE,
      lives.map(({ id }) => timesOf(events, id, 'DELETE', RELEASE)),
    );
    print(row('append of one event', one));
    print(row('append of two events in an atomic batch', two));
    return [];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function live(service: RunningService): Promise<Life> {
  await untilIdle(service, 1);
  const begunAt = performance.now();
  const { ms: create, result: created } = await timed(() => createSession(service));
  const socket = await firstReply(created.cdpUrl);
  const reply = performance.now() - begunAt;
  socket.on('error', () => undefined);
  const { ms: release } = await timed(() => stopSession(service, created.id));
  return { id: created.id, create, reply, release };
}

/** The service writes the trace ten times a second; a life is whole once its session has ended. */
async function readTrace(file: string, lastId: string): Promise<SocketEvent[]> {
  const isWhole = (text: string) => text.includes(`.${lastId}.stopped `);
  const text = await eventually(async () => {
    const written = await readFile(file, 'utf8');
    return isWhole(written) && written;
  }, 'the last life is in the trace');
  const lines = text.split('\n').filter((line) => line.endsWith('}'));
  return lines.map((line) => JSON.parse(line) as SocketEvent);
}

/**
 * Milliseconds of each step since the one before, the first one since the request arrived.
 * @throws Error if a step was not seen
 */
function timesOf(
  events: readonly SocketEvent[],
  id: string,
  request: string,
  steps: readonly Step[],
): number[] {
  const [first] = steps.filter(({ name }) => name.endsWith(' sent'));
  const about: About = { id, sequence: 0, inbox: '' };
  const isFirst = ({ does, what }: SocketEvent) =>
    does === first?.does && what.some((label) => first.labels[0]?.(label, about));
  const at = events.findIndex(isFirst);
  let index = events.findLastIndex(
    ({ what }, place) => place < at && what[0]?.startsWith(request) === true,
  );
  return steps.map((step) => {
    const before = events[index]?.at ?? Number.NaN;
    // One chunk may hold what several steps wait for.
    index = indexOf(events, index, step, about);
    return (events[index]?.at ?? Number.NaN) - before;
  });
}

/** The event by which all labels of the step have been seen; notes what the next steps need. */
function indexOf(
  events: readonly SocketEvent[],
  from: number,
  { name, does, labels }: Step,
  about: About,
): number {
  const missing = new Set(labels);
  for (let index = from; index < events.length; index += 1) {
    const event = events[index];
    if (event?.does !== does) continue;
    for (const label of event.what)
      for (const isIt of missing)
        if (isIt(label, about)) {
          missing.delete(isIt);
          about.sequence = Number(
            /\$JS\.ACK\.\w+\.\w+\.\d+\.(\d+)/.exec(label)?.[1] ?? about.sequence,
          );
        }
    if (missing.size > 0) continue;
    // The last message of an append asks for the answer.
    if (name.endsWith(' sent'))
      about.inbox = /PUB evt\S* (_INBOX\S*) /.exec(event.what.join())?.[1] ?? '';
    return index;
  }
  throw new Error(`${name} was not seen for ${about.id}`);
}

function printSteps(
  print: (line?: string) => void,
  steps: readonly Step[],
  lives: readonly number[][],
): void {
  const totals = lives.map((times) => times.reduce((sum, ms) => sum + ms, 0));
  print(row('  in the service, request read → answer', summarize(totals)));
  for (const [step, { name }] of steps.entries())
    print(row(`    → ${name}`, summarize(lives.map((times) => times[step] ?? Number.NaN))));
  print();
}
