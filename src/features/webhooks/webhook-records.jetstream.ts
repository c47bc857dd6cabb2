import {
  DELIVERIES_STREAM,
  webhookAttemptsSubject,
  webhookProgressSubject,
  WEBHOOKS_STREAM,
  WEBHOOKS_SUBJECTS,
} from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { getMany } from '#src/kernel/event-store/jetstream/direct-get.ts';
import {
  isWrongLastSequence,
  requestWithRetry,
} from '#src/kernel/event-store/jetstream/request.ts';
import type { Progress } from './progress.ts';
import type { AttemptRecord, WebhookRecords } from './webhook-records.ts';

const ANSWER_MS = 2_000;
/** As many as the stream keeps of a webhook. */
const KEPT_MAX = 500;

export function createJetStreamWebhookRecords(connection: JetStreamConnection): WebhookRecords {
  const { js, jsm } = connection;
  return {
    load: (webhookId) =>
      requestWithRetry(connection, ANSWER_MS, async () => {
        // From the leader: a replica may lag, and the next write would be refused.
        const query = { last_by_subj: webhookProgressSubject(webhookId) };
        const message = await jsm.streams.getMessage(WEBHOOKS_STREAM, query);
        if (message === null) return { progress: null, revision: 0 };
        return { progress: message.json<Progress>(), revision: message.seq };
      }),
    async save(webhookId, progress, revision) {
      const expect = { expect: { lastSubjectSequence: revision } };
      try {
        const stored = await requestWithRetry(connection, ANSWER_MS, () =>
          js.publish(webhookProgressSubject(webhookId), JSON.stringify(progress), expect),
        );
        return stored.seq;
      } catch (error) {
        if (!isWrongLastSequence(error)) throw error;
        return null;
      }
    },
    async note(webhookId, attempt) {
      await requestWithRetry(connection, ANSWER_MS, () =>
        js.publish(webhookAttemptsSubject(webhookId), JSON.stringify(attempt)),
      );
    },
    async forget(webhookId) {
      await requestWithRetry(connection, ANSWER_MS, async () => {
        await jsm.streams.purge(WEBHOOKS_STREAM, { filter: webhookProgressSubject(webhookId) });
        await jsm.streams.purge(DELIVERIES_STREAM, { filter: webhookAttemptsSubject(webhookId) });
      });
    },
    async webhookIds() {
      const [filter = '>'] = WEBHOOKS_SUBJECTS;
      const query = { subjects_filter: filter, deleted_details: false, offset: 0 };
      const { state } = await requestWithRetry(connection, ANSWER_MS, () =>
        jsm.streams.info(WEBHOOKS_STREAM, query),
      );
      return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(filter.length - 1));
    },
    async attempts(webhookId) {
      const next_by_subj = webhookAttemptsSubject(webhookId);
      const query = { seq: 1, batch: KEPT_MAX, next_by_subj };
      const found = await getMany(connection, DELIVERIES_STREAM, query, ANSWER_MS);
      return found.map(({ body }) => JSON.parse(body) as AttemptRecord);
    },
  };
}
