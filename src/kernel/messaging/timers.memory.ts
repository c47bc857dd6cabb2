import { timersFilter, timerSubject } from '#events/subjects.ts';
import {
  createMemoryWorkQueue,
  type Clock,
  type MemoryWorkQueue,
  type MemoryWorkQueueOptions,
} from './work-queue.memory.ts';
import type { FiredTimer, Timer, Timers } from './timers.ts';

export type MemoryTimers = Timers & {
  /** Fires all timers that are due by the clock, earliest first; returns their number. */
  fireDue(): number;
};

function subjectOf({ organizationId, sessionId, kind }: Timer): string {
  return timerSubject(organizationId, sessionId, kind);
}

/**
 * Timers of this process, fired by tests: set the clock, then call `fireDue`. A timer that is
 * scheduled for a past moment fires at once.
 */
export function createMemoryTimers(
  clock: Clock,
  options: MemoryWorkQueueOptions = {},
): MemoryTimers {
  const scheduled = new Map<string, { timer: Timer; at: number }>();
  const fired: FiredTimer[] = [];
  const queues = new Map<string, MemoryWorkQueue<FiredTimer>>();

  function fireDue(): number {
    const due = [...scheduled]
      .filter(([, { at }]) => at <= clock.now())
      .toSorted(([, a], [, b]) => a.at - b.at);
    for (const [subject, { timer }] of due) {
      scheduled.delete(subject);
      const one = { ...timer, firedAt: clock.now() };
      fired.push(one);
      for (const queue of queues.values()) queue.push(one);
    }
    return due.length;
  }

  return {
    fireDue,
    schedule({ organizationId, sessionId, kind }, at) {
      const timer = { organizationId, sessionId, kind };
      scheduled.set(subjectOf(timer), { timer, at: at.getTime() });
      if (at.getTime() <= clock.now()) fireDue();
      return Promise.resolve();
    },
    cancel(organizationId, sessionId) {
      const prefix = timersFilter(organizationId, sessionId).replace('>', '');
      for (const subject of scheduled.keys())
        if (subject.startsWith(prefix)) scheduled.delete(subject);
      return Promise.resolve();
    },
    scheduled() {
      const subjects = new Set(scheduled.keys());
      return Promise.resolve({ has: (timer) => subjects.has(subjectOf(timer)) });
    },
    fired(name) {
      const queue = queues.get(name) ?? createMemoryWorkQueue<FiredTimer>(clock, options);
      if (!queues.has(name)) for (const timer of fired) queue.push(timer);
      queues.set(name, queue);
      return Promise.resolve(queue.workQueue);
    },
  };
}
