import {
  headers,
  NoRespondersError,
  RequestError,
  TimeoutError,
  type Msg,
} from '@nats-io/transport-node';
import { screenshotSubject } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import { isForbidden, isOutage } from '#src/event-store/jetstream/request.ts';
import {
  ANSWER_MS,
  PICTURE_BYTES_MAX,
  RETRY_AFTER_MS,
  type AnswerScreenshot,
  type ScreenshotAnswer,
  type ScreenshotQuestion,
  type Screenshots,
} from '../screenshots.ts';

/** The answer without the picture, as JSON; the picture is the message's data. */
const HEADER = 'Screenshot';
/** A message's headers count towards its largest size. */
const HEADER_BYTES_MAX = 1_024;
const FAILED: ScreenshotAnswer = { kind: 'no-picture', retryAfterMs: RETRY_AFTER_MS };

/** Requests and replies of NATS, on the connection that is there anyway. */
export function createJetStreamScreenshots(
  connection: JetStreamConnection,
  { answerMs = ANSWER_MS }: { answerMs?: number } = {},
): Screenshots {
  const { nc } = connection;
  const bytesMax = () =>
    Math.min(PICTURE_BYTES_MAX, (nc.info?.max_payload ?? PICTURE_BYTES_MAX) - HEADER_BYTES_MAX);

  async function respond(request: Msg, answer: AnswerScreenshot): Promise<void> {
    const given = await answer(request.json<ScreenshotQuestion>(), bytesMax()).catch(
      (error: unknown) => {
        connection.report(error, 'making a screenshot failed');
        return FAILED;
      },
    );
    const isTooLarge = given.kind === 'image' && given.bytes.length > bytesMax();
    const { bytes = new Uint8Array(), ...rest } = { bytes: undefined, ...given };
    const head = headers();
    head.set(HEADER, JSON.stringify(isTooLarge ? FAILED : rest));
    request.respond(isTooLarge ? new Uint8Array() : bytes, { headers: head });
  }

  return {
    async ask(serverId, question) {
      const subject = screenshotSubject(serverId);
      if (!connection.isConnected()) throw new Unavailable('event-log', new Error('not connected'));
      try {
        const asked = nc.request(subject, JSON.stringify(question), { timeout: answerMs });
        return answerOf(await connection.whileConnected(asked));
      } catch (error) {
        if (hasNoServer(error)) return { kind: 'no-server' };
        if (isOutage(error)) throw new Unavailable('event-log', error);
        throw error;
      }
    },

    serve(serverId, answer) {
      const ended = new AbortController();
      const subject = screenshotSubject(serverId);
      async function serveAll(wentWell: () => void): Promise<void> {
        const subscription = nc.subscribe(subject);
        const end = () => subscription.unsubscribe();
        ended.signal.addEventListener('abort', end, { once: true });
        try {
          for await (const request of subscription) {
            wentWell();
            void respond(request, answer).catch((error: unknown) =>
              connection.report(error, 'answering a question for a screenshot failed'),
            );
          }
        } finally {
          ended.signal.removeEventListener('abort', end);
        }
      }
      void nc.closed().then(() => ended.abort());
      void keepTrying(ended.signal, serveAll, (error) =>
        connection.report(error, 'receiving questions for screenshots failed; retrying'),
      );
      return { [Symbol.dispose]: () => ended.abort() };
    },
  };
}

function answerOf(reply: Msg): ScreenshotAnswer {
  const answer = JSON.parse(reply.headers?.get(HEADER) ?? '{}') as ScreenshotAnswer;
  return answer.kind === 'image' ? { ...answer, bytes: reply.data } : answer;
}

/** No server listens, none has answered in time, or this process may not ask. */
function hasNoServer(error: unknown): boolean {
  if (error instanceof NoRespondersError || error instanceof TimeoutError) return true;
  return (error instanceof RequestError && error.isNoResponders()) || isForbidden(error);
}
