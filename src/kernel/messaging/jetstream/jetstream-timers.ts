import { MalformedEvent } from '#events/codec.ts';
import {
  FIRED_SUBJECTS,
  firedSubject,
  isId,
  organizationTimersFilter,
  timerKinds,
  timersFilter,
  timerSubject,
  TIMERS_STREAM,
} from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { Readable, Stored } from '#src/kernel/event-store/jetstream/message.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import { openWorkQueue, type WorkQueueOptions } from './jetstream-work-queue.ts';
import type { FiredTimer, Timers } from '../timers.ts';

const WRITE_MS = 5_000;

export type JetStreamTimersOptions = {
  /** How long a fired timer is held if its consumer does not respond; default 5 s. */
  leaseMs?: number;
  onOpened?: NonNullable<WorkQueueOptions<FiredTimer>['onOpened']>;
};

/**
 * Timers as scheduled messages of the TIMERS stream. The server checks them four times a second;
 * those that became due while it was down fire when it is back. Fired timers are not stored among
 * the events, because a firing carries no optimistic check. They have no time to live, because
 * timekeepers may be down for any time; each is removed once it is acknowledged.
 */
export function createJetStreamTimers(
  connection: JetStreamConnection,
  options: JetStreamTimersOptions = {},
): Timers {
  const { js, jsm } = connection;
  return {
    async schedule(timer, at) {
      const { organizationId, sessionId, kind } = timer;
      const target = firedSubject(organizationId, sessionId, kind);
      const schedule = { specification: at, target };
      const subject = timerSubject(organizationId, sessionId, kind);
      // Only the body of the schedule reaches the receiver of the firing.
      const body = JSON.stringify({ organizationId, sessionId, kind });
      await requestWithRetry(connection, WRITE_MS, () => js.publish(subject, body, { schedule }));
    },

    async cancel(organizationId, sessionId) {
      const filter = timersFilter(organizationId, sessionId);
      await requestWithRetry(connection, WRITE_MS, () =>
        jsm.streams.purge(TIMERS_STREAM, { filter }),
      );
    },

    async scheduled(organizationId) {
      const query = { subjects_filter: organizationTimersFilter(organizationId) };
      const { state } = await requestWithRetry(connection, WRITE_MS, () =>
        jsm.streams.info(TIMERS_STREAM, query),
      );
      const subjects = new Set(Object.keys(state.subjects ?? {}));
      return {
        has: ({ sessionId, kind }) => subjects.has(timerSubject(organizationId, sessionId, kind)),
      };
    },

    fired: (name) =>
      openWorkQueue<FiredTimer>(connection, {
        stream: TIMERS_STREAM,
        name,
        subjects: [FIRED_SUBJECTS],
        removesAcknowledged: true,
        ...options,
        read: readTimer,
        aggregateOf: ({ organizationId, sessionId: id }) => ({
          kind: 'session',
          organizationId,
          id,
        }),
      }),
  };
}

function readTimer(message: Stored): FiredTimer {
  const { organizationId, sessionId, kind } = parse(message);
  const known = timerKinds.find((one) => one === kind);
  if (!isText(organizationId) || !isText(sessionId) || known === undefined)
    throw new MalformedEvent(`${message.subject} is not a timer subject`);
  return { organizationId, sessionId, kind: known, firedAt: message.time.getTime() };
}

function parse(message: Readable): Record<string, unknown> {
  try {
    return { ...message.json<Record<string, unknown>>() };
  } catch {
    throw new MalformedEvent(`${message.subject}: the body is not JSON`);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && isId(value);
}
