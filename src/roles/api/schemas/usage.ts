import { Type } from 'typebox';
import type { EgressTotals } from '#events/egress.ts';
import { Count, Nullable, Timestamp } from './fields.ts';

/** Schemas of an organization's usage: its bill, and the sessions behind each line of it. */

const Time = Type.String({ format: 'date-time' });

const UsageEvent = Type.Object(
  {
    id: Type.String({ examples: ['evt_c0Zq4nRk1mT8yXwU5sLd2B'], description: 'CloudEvents id' }),
    sequence: Count(48_211, 'position in the event store'),
    type: Type.String({ examples: ['ledger.slot-released'] }),
  },
  { title: 'UsageEvent' },
);

const UsageEgress = Type.Object(
  {
    bytes_sent: Count(18_204),
    bytes_received: Count(402_117),
    refused: Count(0, 'connections and requests that were refused'),
  },
  { title: 'UsageEgress', description: 'traffic of browsers whose sessions have `egress` rules' },
);

const UsageLine = Type.Object(
  {
    session_id: Type.String({ examples: ['ses_J5mYt3QKX2m0bq1uHcR8Vw'] }),
    session_name: Type.String({ examples: ['checkout-test'] }),
    user_id: Type.String({ examples: ['ada'] }),
    started_at: Nullable(Time, { examples: ['2026-11-20T09:30:00.041Z'] }),
    billed_until: Nullable(Time, { examples: ['2026-11-20T09:41:12.806Z'] }),
    ended_at: Nullable(Time, { examples: ['2026-11-20T09:41:13.120Z'] }),
    ended_reason: Nullable(Type.String(), { examples: ['user'] }),
    minutes: Count(
      12,
      'started minutes from started_at to billed_until, at most the reserved ones',
    ),
    credits_reserved: Count(90),
    credits_used: Count(12),
    credits_refunded: Count(78),
    egress: Nullable(UsageEgress, {
      description: 'null: it has no `egress` rules, or no traffic was recorded',
    }),
    events: Type.Array(UsageEvent, { description: 'the events behind this line, oldest first' }),
  },
  { title: 'UsageLine', description: 'one session; `started_at` is null if it had no browser' },
);

export const Usage = Type.Object(
  {
    organization_id: Type.String({ examples: ['acme'] }),
    from: Timestamp('2026-11-01T00:00:00.000Z', 'included'),
    to: Timestamp('2026-12-01T00:00:00.000Z', 'not included'),
    totals: Type.Object(
      {
        sessions: Count(1, 'sessions that were billed between from and to'),
        minutes: Count(12),
        credits: Count(12, 'one credit is one minute'),
        egress: UsageEgress,
      },
      { description: 'sums over all pages' },
    ),
    open: Type.Object(
      { sessions: Count(3), credits_reserved: Count(270) },
      { description: 'sessions that had not ended at `to`; they are billed when they end' },
    ),
    lines: Type.Array(UsageLine, { description: 'in the order of settlement' }),
    pagination: Type.Object({
      limit: Count(20),
      next: Nullable(Type.String(), {
        description: '`after` of the next page; null on the last page',
        examples: [null],
      }),
    }),
  },
  { title: 'Usage' },
);

export function presentUsageEgress({ bytesSent, bytesReceived, refused }: EgressTotals) {
  return { bytes_sent: bytesSent, bytes_received: bytesReceived, refused };
}
