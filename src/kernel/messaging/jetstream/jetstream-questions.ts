import {
  headers,
  NoRespondersError,
  RequestError,
  TimeoutError,
  type Msg,
} from '@nats-io/transport-node';
import { askSubject } from '#events/subjects.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { isForbidden, isOutage } from '#src/kernel/event-store/jetstream/request.ts';
import {
  bytesOf,
  questionKinds,
  type Answer,
  type AnswerOf,
  type QuestionKind,
  type QuestionOf,
  type ServerQuestions,
} from '../server-questions.ts';

/** Of an answer that may have bytes: the rest of it, as JSON; the bytes are the message's data. */
const HEADER = 'Answer';
/** A message's headers count towards its largest size. */
const HEADER_BYTES_MAX = 1_024;

/** Requests and replies of NATS, on the connection that is there anyway. */
export function createJetStreamQuestions(
  connection: JetStreamConnection,
  { answerMs }: { answerMs?: number } = {},
): ServerQuestions {
  const { nc } = connection;

  async function respond<Kind extends QuestionKind>(
    kind: Kind,
    request: Msg,
    answer: Answer<Kind>,
  ): Promise<void> {
    const { failed, failure, ...kindOf } = questionKinds[kind];
    const messageMax = (nc.info?.max_payload ?? Infinity) - HEADER_BYTES_MAX;
    const bytesMax = Math.min(kindOf.bytesMax, messageMax);
    const given = await answer(request.json<QuestionOf<Kind>>(), bytesMax).catch(
      (error: unknown) => {
        connection.report(error, failure);
        return failed;
      },
    );
    write(request, kind, bytesOf(given).length > bytesMax ? failed : given);
  }

  return {
    async ask(serverId, kind, question) {
      const timeout = answerMs ?? questionKinds[kind].answerMs;
      const subject = askSubject(kind, serverId);
      const reply = await request(connection, subject, JSON.stringify(question), timeout);
      return reply === null ? { kind: 'no-server' } : read(kind, reply);
    },
    serve: (serverId, kind, answer) =>
      answerEach(connection, askSubject(kind, serverId), questionKinds[kind].about, (asked) =>
        respond(kind, asked, answer),
      ),
  };
}

function write<Kind extends QuestionKind>(request: Msg, kind: Kind, answer: AnswerOf<Kind>): void {
  if (questionKinds[kind].bytesMax === 0) return void request.respond(JSON.stringify(answer));
  const head = headers();
  head.set(HEADER, JSON.stringify({ ...answer, bytes: undefined }));
  request.respond(bytesOf(answer), { headers: head });
}

function read<Kind extends QuestionKind>(kind: Kind, reply: Msg): AnswerOf<Kind> {
  if (questionKinds[kind].bytesMax === 0) return reply.json<AnswerOf<Kind>>();
  const answer = JSON.parse(reply.headers?.get(HEADER) ?? '{}') as AnswerOf<Kind>;
  return answer.kind === 'image' ? { ...answer, bytes: reply.data } : answer;
}

/**
 * Asks; null: no server listens, none has answered in time, or this process may not ask.
 * @throws Unavailable('event-log') while this process is cut off
 */
async function request(
  connection: JetStreamConnection,
  subject: string,
  question: string,
  timeout: number,
): Promise<Msg | null> {
  if (!connection.isConnected()) throw new Unavailable('event-log', new Error('not connected'));
  try {
    return await connection.whileConnected(connection.nc.request(subject, question, { timeout }));
  } catch (error) {
    if (hasNoServer(error)) return null;
    if (isOutage(error)) throw new Unavailable('event-log', error);
    throw error;
  }
}

/** Calls `respond` for each question until it is disposed of; survives reconnects. */
function answerEach(
  connection: JetStreamConnection,
  subject: string,
  about: string,
  respond: (asked: Msg) => Promise<void>,
): Disposable {
  const { nc } = connection;
  const ended = new AbortController();
  async function answerAll(wentWell: () => void): Promise<void> {
    const subscription = nc.subscribe(subject);
    const end = () => subscription.unsubscribe();
    ended.signal.addEventListener('abort', end, { once: true });
    try {
      for await (const asked of subscription) {
        wentWell();
        void respond(asked).catch((error: unknown) =>
          connection.report(error, `answering a question ${about} failed`),
        );
      }
    } finally {
      ended.signal.removeEventListener('abort', end);
    }
  }
  void nc.closed().then(() => ended.abort());
  void keepTrying(ended.signal, answerAll, (error) =>
    connection.report(error, `receiving questions ${about} failed; retrying`),
  );
  return { [Symbol.dispose]: () => ended.abort() };
}

function hasNoServer(error: unknown): boolean {
  if (error instanceof NoRespondersError || error instanceof TimeoutError) return true;
  return (error instanceof RequestError && error.isNoResponders()) || isForbidden(error);
}
