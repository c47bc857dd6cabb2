import type { EventStore } from '#src/kernel/event-store/event-store.ts';

/** Sequence of the newest event that matches one of the subjects; 0: none. Reads all of them. */
export async function lastOf(
  eventStore: Pick<EventStore, 'read'>,
  subjects: readonly string[],
): Promise<number> {
  let last = 0;
  const onUnreadable = ({ sequence }: { sequence: number }) => {
    last = Math.max(last, sequence);
  };
  for await (const batch of eventStore.read({ subjects, onUnreadable }))
    last = Math.max(last, batch.at(-1)?.sequence ?? 0);
  return last;
}
