import type { ReadStreamSizes } from '../stream-sizes.ts';
import type { JetStreamConnection } from './connection.ts';
import { requestWithRetry } from './request.ts';
import { examineStreams } from './streams.ts';

const READ_MS = 2_000;

/**
 * Asks each stream for its info, at constant cost: the server keeps the number of subjects, and is
 * never asked to list them.
 */
export function createJetStreamSizes(connection: JetStreamConnection): ReadStreamSizes {
  return async () => {
    const streams = await requestWithRetry(connection, READ_MS, () =>
      examineStreams(connection.jsm),
    );
    return Object.fromEntries(
      streams.flatMap(({ name, info }) => {
        if (info === null) return [];
        const { bytes, messages, num_subjects: subjects = 0, first_ts: first } = info.state;
        const oldestAt = messages === 0 ? null : first;
        return [[name, { bytes, messages, subjects, oldestAt }]];
      }),
    );
  };
}
