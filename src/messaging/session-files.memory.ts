import { within } from '#src/async/timeout.ts';
import {
  ANSWER_MS,
  type AnswerFileQuestion,
  type FileAnswer,
  type SessionFilesPort,
} from './session-files.ts';

/** Questions and answers within this process. */
export function createMemorySessionFiles({ answerMs = ANSWER_MS } = {}): SessionFilesPort {
  const servers = new Map<string, AnswerFileQuestion>();
  return {
    async ask(serverId, question) {
      const answer = servers.get(serverId);
      if (answer === undefined) return { kind: 'no-server' };
      const asked = answer(question).catch((): FileAnswer => ({ kind: 'failed' }));
      return within(answerMs, asked, (): FileAnswer => ({ kind: 'no-server' }));
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
