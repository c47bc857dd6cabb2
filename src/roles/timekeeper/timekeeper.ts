import { isOf, type RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { consume } from '#src/kernel/messaging/work-queue.ts';
import { withState } from '#src/kernel/event-store/load-state.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { Timer } from '#src/kernel/messaging/timers.ts';
import { timersAfter } from './schedule-timers.ts';
import { timerCommand, rescheduleAt } from './timer-command.ts';
import { watchLostClients } from './lost-clients.ts';
import { watchServers } from './lost-servers.ts';
import { watchOverdue } from './overdue.ts';
import type { TimekeeperDependencies } from './dependencies.ts';

/**
 * Events, and fired timers, that are handled at once. Handling is waiting for NATS: one at a time
 * it is some 400 events a second, with 64 four times as many.
 */
const CONCURRENCY = 64;
/** Delay between an event and its timers: the request that waits for the session goes first. */
const SCHEDULE_AFTER_MS = 100;
/** After this many failed deliveries an event or timer becomes a dead letter; each is logged. */
const DELIVERIES_MAX = 8;

/**
 * Process manager: events → timers → commands. Five loops: events set timers, fired timers become
 * commands, lost timers are found, servers without a lease are declared lost, browser sessions of
 * lost MCP clients are ended. Any number of timekeepers may run; every step is idempotent.
 */
export async function startTimekeeper(
  dependencies: TimekeeperDependencies,
): Promise<AsyncDisposable> {
  const { openWorkQueue, timers, log } = dependencies;
  const stop = new AbortController();
  const { signal } = stop;
  function onFailure(error: unknown, item: RecordedEvent | Timer, fate: 'retried' | 'dead letter') {
    log.warn(
      { err: error, fate, item: 'kind' in item ? item : item.id },
      'failed to handle an event or a timer',
    );
  }
  const [events, fired] = await Promise.all([
    openWorkQueue('timekeeper', filters.sessionTimers),
    timers.fired('timekeeper'),
  ]);
  const common = { signal, deliveriesMax: DELIVERIES_MAX, onFailure, concurrency: CONCURRENCY };
  const loops = [
    consume(events, {
      ...common,
      keyOf: ({ aggregate }) => ('id' in aggregate ? aggregate.id : aggregate.kind),
      handle: (event) => scheduleTimers(dependencies, event),
    }),
    consume(fired, {
      ...common,
      keyOf: ({ sessionId }) => sessionId,
      handle: (timer) => handleTimer(dependencies, timer),
    }),
    watchOverdue(
      dependencies,
      (timer) => handleTimer(dependencies, { ...timer, firedAt: null }),
      signal,
    ),
    watchServers(dependencies, signal),
    watchLostClients(dependencies, signal),
  ];
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

async function scheduleTimers(
  { context, timers, queue }: TimekeeperDependencies,
  event: RecordedEvent,
): Promise<void> {
  if (!isOf('session', event)) return;
  // This is no limit of the events in a second: those that had to wait for their turn are older.
  const ageMs = context.now() - Date.parse(event.time);
  if (ageMs >= 0 && ageMs < SCHEDULE_AFTER_MS) await sleep(SCHEDULE_AFTER_MS - ageMs);
  const { organizationId, id: sessionId } = event.aggregate;
  const steps = timersAfter(await withState(context.eventStore, event), queue);
  // Each step is about another timer, so they need no order.
  await Promise.all(
    steps.map((step) =>
      step === 'cancel-all'
        ? timers.cancel(organizationId, sessionId)
        : timers.schedule({ organizationId, sessionId, kind: step.kind }, new Date(step.at)),
    ),
  );
}

async function handleTimer(
  { context, timers, queue }: TimekeeperDependencies,
  timer: Timer & { firedAt: number | null },
): Promise<void> {
  const { organizationId, sessionId, kind, firedAt } = timer;
  const now = context.now();
  const times = { now, queueTimeoutMs: queue.timeoutMs };
  const command = timerCommand(kind, times);
  const identity = { organizationId, id: sessionId };
  const handled = await handleSessionCommand(
    context,
    identity,
    command,
    newMetadata(`timekeeper/${kind}`),
  );
  // No such session: the timer is from before the event store was wiped.
  if (isRejection(handled)) return;
  const again = handled.isChanged ? null : rescheduleAt(kind, handled.state, { ...times, firedAt });
  if (again !== null) await timers.schedule(timer, new Date(again));
}
