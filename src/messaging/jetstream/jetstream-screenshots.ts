import { headers, type Msg } from '@nats-io/transport-node';
import { screenshotSubject } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import {
  ANSWER_MS,
  PICTURE_BYTES_MAX,
  RETRY_AFTER_MS,
  type AnswerScreenshot,
  type ScreenshotAnswer,
  type ScreenshotQuestion,
  type Screenshots,
} from '../screenshots.ts';
import { answerQuestions, askServer } from './questions.ts';

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
      const reply = await askServer(connection, screenshotSubject(serverId), question, answerMs);
      return reply === null ? { kind: 'no-server' } : answerOf(reply);
    },
    serve: (serverId, answer) =>
      answerQuestions(connection, screenshotSubject(serverId), 'for screenshots', (request) =>
        respond(request, answer),
      ),
  };
}

function answerOf(reply: Msg): ScreenshotAnswer {
  const answer = JSON.parse(reply.headers?.get(HEADER) ?? '{}') as ScreenshotAnswer;
  return answer.kind === 'image' ? { ...answer, bytes: reply.data } : answer;
}
