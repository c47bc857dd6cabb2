import { timersFilter, timerSubject } from '#events/subjects.ts';
import { createMemoryQueue, type Clock, type MemoryQueue } from './work-queue.memory.ts';
import type { Timer, Timers } from './timers.ts';

export type MemoryTimers = Timers & {
  /** Fires what is due by the clock, earliest first; how many those were. */
  fireDue(): number;
};

/**
 * Timers of this process, fired by hand: set the clock, then `fireDue`. One armed for a moment that
 * has passed fires at once.
 */
export function createMemoryTimers(clock: Clock): MemoryTimers {
  const armed = new Map<string, { timer: Timer; at: number }>();
  const fired: Timer[] = [];
  const queues = new Map<string, MemoryQueue<Timer>>();

  function fireDue(): number {
    const due = [...armed]
      .filter(([, { at }]) => at <= clock.now())
      .toSorted(([, a], [, b]) => a.at - b.at);
    for (const [subject, { timer }] of due) {
      armed.delete(subject);
      fired.push(timer);
      for (const queue of queues.values()) queue.push(timer);
    }
    return due.length;
  }

  return {
    fireDue,
    arm({ organizationId, sessionId, kind }, at) {
      const timer = { organizationId, sessionId, kind };
      armed.set(timerSubject(organizationId, sessionId, kind), { timer, at: at.getTime() });
      if (at.getTime() <= clock.now()) fireDue();
      return Promise.resolve();
    },
    cancel(organizationId, sessionId) {
      const prefix = timersFilter(organizationId, sessionId).replace('>', '');
      for (const subject of armed.keys()) if (subject.startsWith(prefix)) armed.delete(subject);
      return Promise.resolve();
    },
    fired(name) {
      const queue = queues.get(name) ?? createMemoryQueue<Timer>(clock);
      if (!queues.has(name)) for (const timer of fired) queue.push(timer);
      queues.set(name, queue);
      return Promise.resolve(queue.inbox);
    },
  };
}
