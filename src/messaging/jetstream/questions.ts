import { NoRespondersError, RequestError, TimeoutError, type Msg } from '@nats-io/transport-node';
import { keepTrying } from '#src/async/back-off.ts';
import { Unavailable } from '#src/errors.ts';
import type { JetStreamConnection } from '#src/event-store/jetstream/connection.ts';
import { isForbidden, isOutage } from '#src/event-store/jetstream/request.ts';

/** Questions to one server: requests and replies of NATS, on the connection that is there. */

/**
 * Asks; null: no server listens, none has answered in time, or this process may not ask.
 * @throws Unavailable('event-log') while this process is cut off
 */
export async function askServer(
  connection: JetStreamConnection,
  subject: string,
  question: object,
  answerMs: number,
): Promise<Msg | null> {
  if (!connection.isConnected()) throw new Unavailable('event-log', new Error('not connected'));
  try {
    const asked = connection.nc.request(subject, JSON.stringify(question), { timeout: answerMs });
    return await connection.whileConnected(asked);
  } catch (error) {
    if (hasNoServer(error)) return null;
    if (isOutage(error)) throw new Unavailable('event-log', error);
    throw error;
  }
}

/**
 * Calls `respond` for each question until it is disposed of; survives reconnects.
 * @param about the questions, for the log: `for screenshots`
 */
export function answerQuestions(
  connection: JetStreamConnection,
  subject: string,
  about: string,
  respond: (request: Msg) => Promise<void>,
): Disposable {
  const { nc } = connection;
  const ended = new AbortController();
  async function answerAll(wentWell: () => void): Promise<void> {
    const subscription = nc.subscribe(subject);
    const end = () => subscription.unsubscribe();
    ended.signal.addEventListener('abort', end, { once: true });
    try {
      for await (const request of subscription) {
        wentWell();
        void respond(request).catch((error: unknown) =>
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
