import { encode } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { decideWorkload, type WorkloadCommand } from '#src/kernel/domain/fleet/workload.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { browser, createSession, HOUR, MINUTE, SECOND, T0 } from '#test/support/examples.ts';

export const decidedOrganizations = ['org_acme', 'org_bolt'] as const;
const SESSIONS = 36;

/** Commands of a session that began at `from`, in turn. */
type End = (from: number) => SessionCommand[];
const confirm = (now: number): SessionCommand => ({ type: 'ConfirmStopped', now });
const fail = (
  reason: Extract<SessionCommand, { type: 'FailSession' }>['reason'],
  now: number,
): SessionCommand => ({ type: 'FailSession', reason, detail: 'as decided', exitCode: null, now });
const access = (now: number): SessionCommand => ({ type: 'RecordAccess', via: 'cdp', now });
const stop = (now: number): SessionCommand => ({ type: 'StopSession', reason: 'user', now });

const ends: readonly End[] = [
  (from) => [access(from + MINUTE), stop(from + 20 * MINUTE), confirm(from + 21 * MINUTE)],
  (from) => [access(from + MINUTE), fail('browser_crashed', from + 7 * MINUTE)],
  (from) => [
    access(from + MINUTE),
    {
      type: 'ExtendSession',
      byMs: HOUR,
      maxLifetimeMs: 72 * HOUR,
      duration: '1h',
      now: from + 30 * MINUTE,
    },
    { type: 'ExpireSession', now: from + 3 * HOUR + MINUTE },
    confirm(from + 3 * HOUR + 2 * MINUTE),
  ],
  // It is never accessed.
  (from) => [stop(from + 11 * MINUTE), confirm(from + 12 * MINUTE)],
  (from) => [access(from + 2 * MINUTE)],
  (from) => [access(from + MINUTE), fail('server_lost', from + 40 * MINUTE)],
];

/**
 * An event store in which two organizations had 36 sessions in three days, through the commands of
 * the service: their browsers, ledgers and states are as a service decides them.
 */
export async function decidedStore(): Promise<EventStore> {
  const eventStore = createMemoryEventStore();
  let now = T0;
  const context = createCommandContext(eventStore, () => now);
  const done = async (handling: Promise<unknown>) => {
    const result = await handling;
    if (isRejection(result as object)) throw new Error(JSON.stringify(result));
  };
  for (const id of decidedOrganizations) {
    const asked = { id, name: id, tier: 'max', credits: 100_000 } as const;
    await done(registerOrganization(context, asked, newMetadata('user/ann')));
  }
  for (let number = 0; number < SESSIONS; number += 1) {
    const organizationId = decidedOrganizations[number % 3 === 0 ? 1 : 0];
    const from = T0 + number * 2 * HOUR;
    const user = `user/u${number % 4}`;
    const workload = { kind: 'workload', id: `wl_${number}` } as const;
    const place = { ...browser(workload.id), serverId: `srv_${number % 3}` };
    const send = (command: SessionCommand, by = 'provisioner') => {
      now = 'now' in command ? command.now : now;
      const identity = { organizationId, id: `ses_${number}` };
      const limits = { concurrentSessions: 50 };
      return done(handleSessionCommand(context, identity, command, newMetadata(by), limits));
    };
    const launch = (command: WorkloadCommand) => {
      const decide = (state: Parameters<typeof decideWorkload>[1]) =>
        decideWorkload(command, state);
      return done(handleCommand<'workload'>(context, workload, decide, newMetadata('provisioner')));
    };
    now = from - MINUTE;
    await launch({ type: 'Provision', serverId: place.serverId });
    await launch({ type: 'Launch' });
    await launch({ type: 'ReportIdle', launchMs: 300 });
    const labels: Record<string, string> = number % 5 === 0 ? {} : { team: `team-${number % 2}` };
    await send(createSession({ userId: user.slice('user/'.length), labels, now: from }), user);
    if (number % 4 === 1) await send({ type: 'QueueSession', now: from + SECOND });
    if (number % 9 === 8) {
      const queueTimeoutMs = 5 * MINUTE;
      await send({ type: 'FailQueuedSession', queueTimeoutMs, now: from + 6 * MINUTE });
      continue;
    }
    const startedAt = from + (number % 7) * SECOND;
    now = startedAt;
    await launch({ type: 'Assign', organizationId, sessionId: `ses_${number}` });
    await send({ type: 'ActivateSession', workload: place, now: startedAt });
    for (const command of ends[number % ends.length]?.(startedAt) ?? []) await send(command);
  }
  return eventStore;
}

/** The stored record of an event. */
export function recordOf(event: RecordedEvent): RawRecord {
  const { subject, headers, body } = encode(event);
  return {
    sequence: event.sequence,
    storedAt: event.time.replace('Z', '000007Z'),
    subject,
    headers: Object.entries(headers),
    body: new TextDecoder().decode(body),
  };
}

export async function eventsOf(eventStore: EventStore): Promise<RecordedEvent[]> {
  const onUnreadable = ({ reason }: { reason: string }) => {
    throw new Error(reason);
  };
  return (await Array.fromAsync(eventStore.read({ subjects: ['>'], onUnreadable }))).flat();
}

/** Records in memory, as the event store reads them. */
export function rawRecordsOf(records: readonly RawRecord[]): RawRecords {
  return {
    async *read({ after, upTo }) {
      const wanted = records.filter(({ sequence }) => sequence > after && sequence <= upTo);
      for (let at = 0; at < wanted.length; at += 50) yield wanted.slice(at, at + 50);
    },
  };
}
