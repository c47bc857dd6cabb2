import { encode } from '#events/codec.ts';
import { filters, filtersFor, matchesAnyFilter } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';

/** The records of a memory event store, which keeps events decoded: each is encoded again. */
export function createMemoryRecords(eventStore: EventStore): RawRecords {
  return {
    async *read(range) {
      const { after, upTo } = range;
      const wanted = 'filter' in range ? [range.filter] : filtersFor(range.organizationId, null);
      const onUnreadable = (poison: object) => {
        throw new Error(JSON.stringify(poison));
      };
      const all = { subjects: filters.all, after, upTo, onUnreadable };
      for await (const batch of eventStore.read(all))
        yield batch.flatMap((event) => {
          const { subject, headers, body } = encode(event);
          if (!matchesAnyFilter(wanted, subject)) return [];
          return {
            sequence: event.sequence,
            storedAt: event.time.replace('Z', '000000Z'),
            subject,
            headers: Object.entries(headers),
            body: new TextDecoder().decode(body),
          };
        });
    },
  };
}
