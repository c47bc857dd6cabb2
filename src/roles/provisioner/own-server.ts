import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { streamFilter } from '#events/subjects.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';
import type { Pool } from './pool/pool.ts';

/**
 * Follows the events of this server after its `joined`: drains and undrains by operators, and that
 * other servers took it for lost. Until the signal aborts.
 */
export async function followOwnServer(dependencies: {
  context: CommandContext;
  pool: Pool;
  after: number;
  signal: AbortSignal;
  onDrained: () => Promise<void>;
  onLost: () => Promise<void>;
}): Promise<void> {
  const { context, pool, signal, onLost } = dependencies;
  const forget = pool.onChange(createDrainReporter(dependencies));
  const follow = (after: number) =>
    context.eventStore.subscribe({
      subjects: [streamFilter({ kind: 'server', id: pool.server.id })],
      after,
      signal,
      onUnreadable: (poison) => pool.log.error(poison, 'unreadable event of the own server'),
    });
  let { after } = dependencies;
  await keepTrying(
    signal,
    async (wentWell) => {
      for await (const batch of follow(after))
        for (const event of batch) {
          if (isOf('server', event)) {
            const { state } = await withState(context.eventStore, event);
            if (state.status === 'lost') await onLost();
            else applyStatus(pool, state.status);
          }
          // Only now: an event whose handling failed is read again.
          after = event.sequence;
          wentWell();
        }
    },
    (error) => pool.log.error({ err: error }, 'cannot follow own server events; trying again'),
  );
  forget();
}

/** Applies the server status from the log; draining lasts until an operator undrains the server. */
export function applyStatus(pool: Pool, status: ServerState['status']): void {
  const isDraining = status === 'draining' || status === 'drained';
  if (isDraining === pool.isDraining) return;
  pool.isDraining = isDraining;
  pool.log.info({ isDraining }, 'drain status changed');
  pool.changed();
}

/** Reports a draining server as drained once it has no browser and no request left. */
function createDrainReporter({
  pool,
  onDrained,
}: {
  pool: Pool;
  onDrained: () => Promise<void>;
}): () => void {
  const { roster, log } = pool;
  let isReported = false;
  return function reportDrained() {
    if (!pool.isDraining || !pool.isOpen) {
      isReported = false;
      return;
    }
    const isEmpty = roster.ids().size === 0 && pool.waiting.length === 0 && pool.lookups === 0;
    if (!isEmpty || isReported) return;
    isReported = true;
    onDrained().catch((error: unknown) => {
      isReported = false;
      log.warn({ err: error }, 'failed to report that this server has drained');
    });
  };
}
