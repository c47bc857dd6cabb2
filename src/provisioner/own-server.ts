import { isOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import { filterOf } from '#events/subjects.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import type { Pool } from './pool/pool.ts';

/**
 * Follows what the log says of this server itself, from its `joined` on: the operator's drains, and
 * that others took it for lost. Until the signal aborts.
 */
export async function followOwnServer(parts: {
  desk: Desk;
  pool: Pool;
  after: number;
  signal: AbortSignal;
  onDrained: () => Promise<void>;
  onLost: () => Promise<void>;
}): Promise<void> {
  const { desk, pool, signal, onLost } = parts;
  const forget = pool.onChange(createDrain(parts));
  const follow = (after: number) =>
    desk.log.follow({
      subjects: [filterOf({ kind: 'server', id: pool.server.id })],
      after,
      signal,
      onMalformed: (poison) => pool.log.error(poison, 'an event of this server cannot be read'),
    });
  let { after } = parts;
  await keepTrying(
    signal,
    async (wentWell) => {
      for await (const batch of follow(after))
        for (const event of batch) {
          if (isOf('server', event)) {
            if (event.state.status === 'lost') await onLost();
            else applyStatus(pool, event.state.status);
          }
          // Not before: an event that could not be handled is read again.
          after = event.sequence;
          wentWell();
        }
    },
    (error) =>
      pool.log.error({ err: error }, 'this server does not hear what is said of it; trying again'),
  );
  forget();
}

/** What an operator has said stands until another word. */
export function applyStatus(pool: Pool, status: ServerState['status']): void {
  const isDraining = status === 'draining' || status === 'drained';
  if (isDraining === pool.isDraining) return;
  pool.isDraining = isDraining;
  pool.log.info({ isDraining }, 'this server takes sessions, or does not');
  pool.changed();
}

/** While it drains, browsers that wait are retired; when nothing is left, that is told. */
function createDrain({
  pool,
  onDrained,
}: {
  pool: Pool;
  onDrained: () => Promise<void>;
}): () => void {
  const { roster, log } = pool;
  let isTold = false;
  return function drain() {
    if (!pool.isDraining || !pool.isOpen) {
      isTold = false;
      return;
    }
    const isEmpty = roster.ids().size === 0 && pool.waiting.length === 0 && pool.taking === 0;
    if (!isEmpty || isTold) return;
    isTold = true;
    onDrained().catch((error: unknown) => {
      isTold = false;
      log.warn({ err: error }, 'the log does not know that this server has drained');
    });
  };
}
