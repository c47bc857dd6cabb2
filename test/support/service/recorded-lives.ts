import { expect } from 'vitest';
import { parseLife, lifeText, type Life } from '#src/apps/cli/commands/life/life.ts';
import { readLife } from '#src/apps/cli/commands/life/read-life.ts';
import { replayLife } from '#src/apps/cli/commands/life/replay-life.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { createJetStreamRawRecords } from '#src/kernel/event-store/jetstream/jetstream-raw-records.ts';
import type { RunningService } from './service.ts';

/** The recorded lives of sessions, read and written again as `bss session export` does. */
export async function readLives(
  service: Pick<RunningService, 'runtime'>,
  ids: Iterable<string>,
): Promise<Life[]> {
  await using connection = await connectJetStream({ url: service.runtime.nats_url, name: 'test' });
  const records = createJetStreamRawRecords(connection);
  const source = { eventStore: createJetStreamEventStore(connection), records };
  const lives: Life[] = [];
  for (const id of ids) {
    const life = await readLife(source, id, (text) => expect.unreachable(text));
    if (life === null) throw new Error(`there is no session ${id}`);
    lives.push(parseLife(lifeText(life)));
  }
  return lives;
}

/** Expects that this build folds every event to the state that was recorded with it. */
export function expectAsRecorded(lives: readonly Life[]): void {
  for (const life of lives) {
    const { folded, compared, differences, unreadable } = replayLife(life);
    expect({ id: life.sessionId, differences, unreadable, compared }).toEqual({
      id: life.sessionId,
      differences: [],
      unreadable: [],
      compared: folded,
    });
    expect(folded).toBe(life.records.length);
  }
}
