import { ORGANIZATION_SEQUENCE } from '#events/public-event.ts';
import { PUBLIC_STREAM, publicFilterOf } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';

/** Numbers the events of each organization: 1, 2, 3 … */
export type OrganizationSequences = {
  /**
   * The next number of each of these organizations, one for each event, in the order of the events.
   * @param published number of messages in PUBLIC that the events come after
   * @returns null where PUBLIC has more by now: another process is ahead
   * @throws Unavailable('event-log')
   */
  next(organizationIds: readonly string[], published: number): Promise<number[] | null>;
};

const ANSWER_MS = 2_000;
/** Organizations whose last number is kept in memory: some 5 MB. */
const KEPT_MAX = 50_000;

/**
 * Goes on where PUBLIC ends: the last message of an organization has its number, so every process
 * counts the same. After a refusal or a failure of a publish the numbers in memory are ahead of
 * PUBLIC: create one of these for each run of the publisher.
 *
 * An organization without a message in PUBLIC begins with 1: a new one, and one whose messages have
 * all been purged behind the retention.
 */
export function createOrganizationSequences(
  connection: JetStreamConnection,
): OrganizationSequences {
  const last = new Map<string, number>();
  return {
    async next(organizationIds, published) {
      if (last.size > KEPT_MAX) last.clear();
      const missing = [...new Set(organizationIds)].filter((one) => !last.has(one));
      const read = await Promise.all(missing.map((one) => lastOf(connection, one)));
      if (read.some(({ place }) => place > published)) return null;
      for (const [at, one] of missing.entries()) last.set(one, read[at]?.number ?? 0);
      return organizationIds.map((one) => {
        const number = (last.get(one) ?? 0) + 1;
        last.set(one, number);
        return number;
      });
    },
  };
}

/** The number of an organization's last message, and the place in PUBLIC at which it was so. */
async function lastOf(connection: JetStreamConnection, organizationId: string) {
  const { jsm } = connection;
  const filter = publicFilterOf(organizationId);
  return requestWithRetry(connection, ANSWER_MS, async () => {
    const message = await jsm.streams.getMessage(PUBLIC_STREAM, { last_by_subj: filter });
    if (message === null) return { number: 0, place: 0 };
    const number = Number(message.header.get(ORGANIZATION_SEQUENCE));
    if (!Number.isSafeInteger(number) || number <= 0)
      throw new Error(`message ${message.seq} of PUBLIC has no number in its organization`);
    return { number, place: message.seq };
  });
}
