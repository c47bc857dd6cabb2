import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { isRejected } from '#src/errors.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { consume } from '#src/messaging/work-queue.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { Timer } from '#src/messaging/timers.ts';
import { timersAfter } from './schedule-timers.ts';
import { commandFor, rearmAt } from './timer-command.ts';
import { watchServers } from './lost-servers.ts';
import { watchOverdue } from './overdue.ts';
import type { TimekeeperParts } from './dependencies.ts';

/** A session's timers are set this long after its event: its caller, who waits, goes first. */
const ARM_AFTER_MS = 100;
/** After so many failures an event or timer is parked; each failure is logged. */
const DELIVERIES_MAX = 8;

/**
 * Four loops: events arm timers, fired timers become commands, timers that were lost are made good,
 * servers without a lease are lost.
 * Any number of timekeepers may run; each step bears being done twice.
 */
export async function startTimekeeper(parts: TimekeeperParts): Promise<AsyncDisposable> {
  const { desk, timers, log } = parts;
  const stop = new AbortController();
  const { signal } = stop;
  function onFailure(error: unknown, item: RecordedEvent | Timer, fate: 'retried' | 'parked') {
    log.warn({ err: error, fate, item: 'kind' in item ? item : item.id }, 'timekeeper');
  }
  const [events, fired] = await Promise.all([
    desk.log.inbox('timekeeper', filters.sessionTimers),
    timers.fired('timekeeper'),
  ]);
  const common = { signal, deliveriesMax: DELIVERIES_MAX, onFailure };
  const loops = [
    consume(events, { ...common, handle: (event) => arm(parts, event) }),
    consume(fired, { ...common, handle: (timer) => fire(parts, timer) }),
    watchOverdue(parts, (timer) => fire(parts, timer), signal),
    watchServers(parts, signal),
  ];
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

async function arm({ desk, timers, queue }: TimekeeperParts, event: RecordedEvent): Promise<void> {
  if (event.aggregate.kind !== 'session') return;
  const ageMs = desk.now() - Date.parse(event.time);
  if (ageMs >= 0 && ageMs < ARM_AFTER_MS) await pause(ARM_AFTER_MS - ageMs);
  const { organizationId, id: sessionId } = event.aggregate;
  for (const step of timersAfter(event, queue)) {
    if (step === 'cancel-all') await timers.cancel(organizationId, sessionId);
    else await timers.arm({ organizationId, sessionId, kind: step.kind }, new Date(step.at));
  }
}

async function fire({ desk, timers, queue }: TimekeeperParts, timer: Timer): Promise<void> {
  const { organizationId, sessionId, kind } = timer;
  const now = desk.now();
  const command = commandFor(kind, now, queue.timeoutMs);
  const identity = { organizationId, id: sessionId };
  const handled = await handleSession(desk, identity, command, causeBy(`timekeeper/${kind}`));
  // A timer of a session that the log does not have: another log's, before a wipe.
  if (isRejected(handled)) return;
  const again = handled.isChanged ? null : rearmAt(kind, handled.state, now);
  if (again !== null) await timers.arm(timer, new Date(again));
}
