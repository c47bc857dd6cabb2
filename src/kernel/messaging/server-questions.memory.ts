import { within } from '#src/kernel/async/timeout.ts';
import {
  bytesOf,
  questionKinds,
  type Answer,
  type AnswerOf,
  type QuestionKind,
  type ServerQuestions,
} from './server-questions.ts';

/** Questions and answers within this process. */
export function createMemoryQuestions({ answerMs }: { answerMs?: number } = {}): ServerQuestions {
  const servers = new Map<string, unknown>();
  return {
    async ask<Kind extends QuestionKind>(serverId: string, kind: Kind, question: object) {
      const answer = servers.get(`${kind} ${serverId}`) as Answer<Kind> | undefined;
      if (answer === undefined) return { kind: 'no-server' };
      const { bytesMax, failed, answerMs: kindMs } = questionKinds[kind];
      const asked = answer(question as Parameters<typeof answer>[0], bytesMax).then(
        (given) => (bytesOf(given).length > bytesMax ? failed : given),
        () => failed,
      );
      return within(answerMs ?? kindMs, asked, (): AnswerOf<Kind> => ({ kind: 'no-server' }));
    },
    serve(serverId, kind, answer) {
      const key = `${kind} ${serverId}`;
      servers.set(key, answer);
      return {
        [Symbol.dispose]() {
          if (servers.get(key) === answer) servers.delete(key);
        },
      };
    },
  };
}
