import type { Msg } from '@nats-io/transport-node';
import { sessionFilesSubject } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import {
  ANSWER_MS,
  type AnswerFileQuestion,
  type FileAnswer,
  type FileQuestion,
  type SessionFilesPort,
} from '../session-files.ts';
import { answerQuestions, askServer } from './questions.ts';

const FAILED: FileAnswer = { kind: 'failed' };

/** Requests and replies of NATS, both JSON. */
export function createJetStreamSessionFiles(
  connection: JetStreamConnection,
  { answerMs = ANSWER_MS }: { answerMs?: number } = {},
): SessionFilesPort {
  async function respond(request: Msg, answer: AnswerFileQuestion): Promise<void> {
    const given = await answer(request.json<FileQuestion>()).catch((error: unknown) => {
      connection.report(error, 'a question about files failed');
      return FAILED;
    });
    request.respond(JSON.stringify(given));
  }
  return {
    async ask(serverId, question) {
      const subject = sessionFilesSubject(serverId);
      const reply = await askServer(connection, subject, question, answerMs);
      return reply?.json<FileAnswer>() ?? { kind: 'no-server' };
    },
    serve: (serverId, answer) =>
      answerQuestions(connection, sessionFilesSubject(serverId), 'about files', (request) =>
        respond(request, answer),
      ),
  };
}
