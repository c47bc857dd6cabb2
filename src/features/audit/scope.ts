import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import type { AuditScope } from './head.ts';

/** The span of an audit, in ms since the epoch; `to` is not included, and at most now. */
export type AskedSpan = {
  from: number | null;
  to: number | null;
  organization: string | null;
};

/** The scope of an audit by the event store's clock. */
export async function scopeOf(
  source: { eventStore: EventStore; now: () => number },
  asked: AskedSpan,
): Promise<AuditScope> {
  const { from, organization } = asked;
  const to = Math.min(asked.to ?? Infinity, source.now());
  const { id } = await source.eventStore.info();
  return {
    format: 'bss-audit-1',
    log: id,
    organization,
    from: from === null ? null : new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    after: from === null ? 0 : await sequenceAt(source, from - 1),
    up_to: await sequenceAt(source, to - 1),
  };
}
