import { within } from '#src/async/timeout.ts';
import {
  ANSWER_MS,
  PICTURE_BYTES_MAX,
  RETRY_AFTER_MS,
  type AnswerScreenshot,
  type ScreenshotAnswer,
  type Screenshots,
} from './screenshots.ts';

/** Questions and answers within this process. */
export function createMemoryScreenshots({ answerMs = ANSWER_MS } = {}): Screenshots {
  const servers = new Map<string, AnswerScreenshot>();
  return {
    async ask(serverId, question) {
      const answer = servers.get(serverId);
      if (answer === undefined) return { kind: 'no-server' };
      const asked = answer(question, PICTURE_BYTES_MAX).then(
        (given): ScreenshotAnswer => (isTooLarge(given) ? FAILED : given),
        () => FAILED,
      );
      return within(answerMs, asked, (): ScreenshotAnswer => ({ kind: 'no-server' }));
    },
    serve(serverId, answer) {
      servers.set(serverId, answer);
      return {
        [Symbol.dispose]() {
          if (servers.get(serverId) === answer) servers.delete(serverId);
        },
      };
    },
  };
}

const FAILED: ScreenshotAnswer = { kind: 'no-picture', retryAfterMs: RETRY_AFTER_MS };

function isTooLarge(answer: ScreenshotAnswer): boolean {
  return answer.kind === 'image' && answer.bytes.length > PICTURE_BYTES_MAX;
}
