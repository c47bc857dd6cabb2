import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Unavailable } from '#src/kernel/errors.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamQuestions } from '#src/kernel/messaging/jetstream/jetstream-questions.ts';
import { createMemoryQuestions } from '#src/kernel/messaging/server-questions.memory.ts';
import type { Answer, ServerQuestions } from '#src/kernel/messaging/server-questions.ts';
import type { FileQuestion } from '#src/kernel/messaging/session-files.ts';
import {
  PICTURE_BYTES_MAX,
  type ScreenshotAnswer,
  type ScreenshotQuestion,
} from '#src/kernel/messaging/screenshots.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { eventually } from '#test/support/service/service.ts';

type Opened = AsyncDisposable & {
  questions: ServerQuestions;
  /** The same port in another process. */
  other: ServerQuestions;
};
/** Long enough for the largest picture on a busy machine. */
const ANSWER_MS = 2_000;

const adapters: { adapter: string; open: () => Promise<Opened> }[] = [
  ...elsewhere([{ adapter: 'memory', open: openMemory }]),
  ...natsServers.map(({ where, start }) => ({
    adapter: `JetStream in a ${where}`,
    open: async () => openReal(await start()),
  })),
];

async function openMemory(): Promise<Opened> {
  const questions = createMemoryQuestions({ answerMs: ANSWER_MS });
  return { questions, other: questions, async [Symbol.asyncDispose]() {} };
}

async function openReal(nats: Server): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  stack.use(nats);
  const [one, two] = await Promise.all([1, 2].map(() => connectJetStream({ url: nats.url })));
  if (one === undefined || two === undefined) throw new Error('two connections are open');
  stack.use(one);
  stack.use(two);
  const all = stack.move();
  return {
    questions: createJetStreamQuestions(one, { answerMs: ANSWER_MS }),
    other: createJetStreamQuestions(two, { answerMs: ANSWER_MS }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const question: ScreenshotQuestion = {
  organizationId: 'acme',
  sessionId: 'ses_1',
  workloadId: 'wl_1',
  maxWidth: 640,
  known: ['abc', 'def'],
};
const imageOf = (length: number): ScreenshotAnswer => {
  const bytes = Uint8Array.from({ length }, (_, at) => (at * 7) % 256);
  return { kind: 'image', etag: 'an-etag_1', bytes };
};

describe.each(adapters)('questions to servers in $adapter', ({ open }) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** A server that answers until the test has ended. */
  async function serve(answer: Answer<'screenshot'>): Promise<string> {
    const server = freshId('server');
    const serving = opened.other.serve(server, 'screenshot', answer);
    onTestFinished(() => serving[Symbol.dispose]());
    const isThere = async () =>
      (await opened.questions.ask(server, 'screenshot', question)).kind !== 'no-server';
    await eventually(isThere, 'the server listens');
    return server;
  }

  test('are asked of the server that is named, with the whole question', async () => {
    const asked: unknown[] = [];
    const server = await serve(async (received, bytesMax) => {
      asked.push(received);
      expect(bytesMax).toBeGreaterThan(512 * 1024);
      return imageOf(1_000);
    });
    const neighbour = await serve(async () => ({ kind: 'not-here' }));
    const given = await opened.questions.ask(server, 'screenshot', question);
    expect(given).toMatchObject({ kind: 'image', etag: 'an-etag_1' });
    const bytes = given.kind === 'image' ? Buffer.from(given.bytes) : null;
    const wanted = imageOf(1_000);
    expect(bytes?.equals(wanted.kind === 'image' ? wanted.bytes : Buffer.of())).toBe(true);
    expect(asked).toEqual(asked.map(() => question));
    expect(await opened.questions.ask(neighbour, 'screenshot', question)).toEqual({
      kind: 'not-here',
    });
  });

  test.each<ScreenshotAnswer>([
    { kind: 'unchanged', etag: 'abc' },
    { kind: 'not-here' },
    { kind: 'no-picture', retryAfterMs: 5_000 },
    { kind: 'busy', retryAfterMs: 1_000 },
  ])('may be answered without a picture: %j', async (answer) => {
    const server = await serve(async () => answer);
    expect(await opened.questions.ask(server, 'screenshot', question)).toEqual(answer);
  });

  test('may be as large as is promised; a larger one, and a failure, is no picture', async () => {
    const largest = await serve(async (_, bytesMax) => imageOf(bytesMax));
    const given = await opened.questions.ask(largest, 'screenshot', question);
    expect(given.kind === 'image' && given.bytes.length).toBe(PICTURE_BYTES_MAX);
    const larger = await serve(async (_, bytesMax) => imageOf(bytesMax + 1));
    const failing = await serve(async () => Promise.reject(new Error('no browser')));
    for (const server of [larger, failing])
      expect(await opened.questions.ask(server, 'screenshot', question)).toMatchObject({
        kind: 'no-picture',
      });
  });

  test('are answered side by side', async () => {
    const first = Promise.withResolvers<void>();
    const server = await serve(async ({ maxWidth }) => {
      if (maxWidth === 100) await first.promise;
      return { kind: 'not-here' };
    });
    const slow = opened.questions.ask(server, 'screenshot', { ...question, maxWidth: 100 });
    expect(await opened.questions.ask(server, 'screenshot', question)).toEqual({
      kind: 'not-here',
    });
    first.resolve();
    expect(await slow).toEqual({ kind: 'not-here' });
  });

  test('of a server that is not there, or does not answer, are no-server', async () => {
    expect(await opened.questions.ask(freshId('server'), 'screenshot', question)).toEqual({
      kind: 'no-server',
    });
    let isSilent = false;
    const server = await serve(async () =>
      isSilent ? new Promise(() => undefined) : { kind: 'not-here' },
    );
    isSilent = true;
    expect(await opened.questions.ask(server, 'screenshot', question)).toEqual({
      kind: 'no-server',
    });
  });

  test('have an answer of their own kind: about files, which may fail, too', async () => {
    const asked: FileQuestion = {
      ...{ organizationId: 'acme', sessionId: 'ses_1', workloadId: 'wl_1' },
      ...{ ask: 'begin', name: 'ä.txt', fileId: 'fil_1', bytes: null },
    };
    const received: FileQuestion[] = [];
    const server = await serve(async () => ({ kind: 'not-here' }));
    const ask = () => opened.questions.ask(server, 'files', asked);
    expect(await ask()).toEqual({ kind: 'no-server' });
    const begun = { kind: 'begun', bytesMax: 7, limit: 'quota' } as const;
    using _ = opened.other.serve(server, 'files', async (one) => {
      received.push(one);
      if (received.length > 1) throw new Error('the folder has gone');
      return begun;
    });
    await eventually(async () => (await ask()).kind !== 'no-server', 'the server listens');
    expect(received).toEqual([asked]);
    expect(await ask()).toEqual({ kind: 'failed' });
    expect(await opened.questions.ask(server, 'screenshot', question)).toEqual({
      kind: 'not-here',
    });
  });

  test('end with their server', async () => {
    const server = freshId('server');
    const serving = opened.other.serve(server, 'screenshot', async () => ({ kind: 'not-here' }));
    const kind = async () => (await opened.questions.ask(server, 'screenshot', question)).kind;
    await eventually(async () => (await kind()) === 'not-here', 'it listens');
    serving[Symbol.dispose]();
    await eventually(async () => (await kind()) === 'no-server', 'it has gone');
  });
});

test('while NATS is away a question is refused, and is answered once it is back', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url });
  const questions = createJetStreamQuestions(connection);
  using _ = questions.serve('srv_1', 'screenshot', async () => ({ kind: 'not-here' }));
  const kind = () => questions.ask('srv_1', 'screenshot', question).then((answer) => answer.kind);
  await eventually(async () => (await kind()) === 'not-here', 'it listens');
  await nats.kill();
  await eventually(() => !connection.isConnected(), 'the connection is lost');
  await expect(kind()).rejects.toThrow(Unavailable);
  await nats.restart();
  const isBack = async () => (await kind().catch(() => null)) === 'not-here';
  await eventually(isBack, 'it answers again');
});
