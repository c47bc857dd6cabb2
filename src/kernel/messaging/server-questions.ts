import {
  PICTURE_BYTES_MAX,
  RETRY_AFTER_MS,
  type ScreenshotAnswer,
  type ScreenshotQuestion,
} from './screenshots.ts';
import type { FileAnswer, FileQuestion } from './session-files.ts';

/** What servers are asked, and what they answer. */
type Questions = {
  screenshot: { question: ScreenshotQuestion; answer: ScreenshotAnswer };
  files: { question: FileQuestion; answer: FileAnswer };
};
export type QuestionKind = keyof Questions;
export type QuestionOf<Kind extends QuestionKind> = Questions[Kind]['question'];
/** Each kind has `no-server`: the server does not answer. */
export type AnswerOf<Kind extends QuestionKind> = Questions[Kind]['answer'] | { kind: 'no-server' };

/** @param bytesMax how large the bytes of the answer may be */
export type Answer<Kind extends QuestionKind> = (
  question: QuestionOf<Kind>,
  bytesMax: number,
) => Promise<AnswerOf<Kind>>;

/**
 * Port: asks the server that runs a session's browser. Adapters:
 * jetstream/jetstream-questions.ts, server-questions.memory.ts. Nothing is stored: a
 * question that no server answers is lost.
 */
export type ServerQuestions = {
  /**
   * Asks a server; at most for the kind's `answerMs`.
   * @throws Unavailable('event-log') while this process is cut off
   */
  ask<Kind extends QuestionKind>(
    serverId: string,
    kind: Kind,
    question: QuestionOf<Kind>,
  ): Promise<AnswerOf<Kind>>;
  /**
   * Answers the questions of a kind to a server until it is disposed of; survives reconnects. An
   * answer that fails, or whose bytes are too many, reaches the one who asked as the kind's
   * `failed`.
   */
  serve<Kind extends QuestionKind>(serverId: string, kind: Kind, answer: Answer<Kind>): Disposable;
};

/** The bounds of each kind, and what an answer that fails becomes. */
export const questionKinds: {
  readonly [Kind in QuestionKind]: {
    answerMs: number;
    /** How large the `bytes` of an answer may be; 0: it has none. */
    bytesMax: number;
    failed: AnswerOf<Kind>;
    /** For the log. */
    about: string;
    failure: string;
  };
} = {
  screenshot: {
    // Longer than a server takes to give up a browser.
    answerMs: 8_000,
    bytesMax: PICTURE_BYTES_MAX,
    failed: { kind: 'no-picture', retryAfterMs: RETRY_AFTER_MS },
    about: 'for screenshots',
    failure: 'making a screenshot failed',
  },
  files: {
    answerMs: 30_000,
    bytesMax: 0,
    failed: { kind: 'failed' },
    about: 'about files',
    failure: 'a question about files failed',
  },
};

/** The bytes of an answer, beside what is said of them. */
export function bytesOf<Kind extends QuestionKind>(answer: AnswerOf<Kind>): Uint8Array {
  return 'bytes' in answer && answer.bytes instanceof Uint8Array ? answer.bytes : new Uint8Array();
}
