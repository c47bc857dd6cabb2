import { once } from 'node:events';
import { toCloudEvent } from '#events/cloud-event.ts';
import type { RecordedEvent } from '#events/events.ts';
import { filtersFor, type AggregateRef } from '#events/subjects.ts';
import type { Command, CommandSession } from '../command.ts';
import { Misuse, NoService } from '../errors.ts';
import { asId, asOneOf, asWhole, eventTypes } from '../arguments.ts';
import { printable } from '../output.ts';
import { describePoison } from '../read-events.ts';

export const tailEvents: Command = {
  name: 'events tail',
  summary: 'Print events as they happen, one a line, until Ctrl-C',
  options: {
    org: { value: 'ID', meaning: "one organization's events alone" },
    type: { value: 'TYPE', meaning: 'events of one type alone, as session.activated' },
    from: { value: 'SEQ', meaning: 'begin with this event, or with the first: start' },
    limit: { value: 'N', meaning: 'end after so many events' },
  },
  read(given) {
    const organizationId = given.optional('org', asId);
    const type = given.optional('type', asOneOf(eventTypes));
    const subjects = filtersFor(organizationId, type);
    if (subjects.length === 0) throw new Misuse(`${type} is no event of an organization`);
    const after = given.optional('from', asPosition) ?? 'end';
    const limit = given.optional('limit', asWhole(1, Number.MAX_SAFE_INTEGER)) ?? Infinity;
    return async (session) => {
      await tail(session, { subjects, after, limit });
      return null;
    };
  },
};

/** `start`, or the sequence to begin with, as that of the event before. */
function asPosition(text: string): number {
  return text === 'start' ? 0 : asWhole(1, Number.MAX_SAFE_INTEGER)(text) - 1;
}

type Wanted = { subjects: readonly string[]; after: number | 'end'; limit: number };

/** @throws NoService where the log was away for too long */
async function tail(
  { desk, isConnected, isJson, warn }: CommandSession,
  { subjects, after, limit }: Wanted,
): Promise<void> {
  using ending = endings(isConnected);
  const { signal } = ending;
  const events = desk.log.follow({
    subjects,
    after,
    signal,
    onMalformed: (poison) => warn(describePoison(poison)),
  });
  let left = limit;
  for await (const batch of events) {
    for (const event of batch) {
      await write(isJson ? JSON.stringify(toCloudEvent(event)) : describe(event), signal);
      left -= 1;
      if (left === 0 || signal.aborted) break;
    }
    if (left === 0 || signal.aborted) break;
  }
  if (ending.isLost()) throw new NoService('the connection to the event log is lost');
}

/** As long as it takes an embedded log to be whole again, and as much again. */
const AWAY_MAX_MS = 30_000;
/** From the signal to the end: what a reader that stands still has not taken by then is dropped. */
const END_WITHIN_MS = 1_000;

/** Aborts at Ctrl-C, when nobody reads any more, and when the log is away for too long. */
function endings(isConnected: () => boolean) {
  const stop = new AbortController();
  const end = () => stop.abort();
  const endSoon = () => {
    end();
    setTimeout(() => process.exit(), END_WITHIN_MS).unref();
  };
  let connectedAt = performance.now();
  let isLost = false;
  const watch = setInterval(() => {
    if (isConnected()) connectedAt = performance.now();
    isLost = performance.now() - connectedAt > AWAY_MAX_MS;
    if (isLost) end();
  }, 1_000);
  process.once('SIGINT', endSoon);
  process.once('SIGTERM', endSoon);
  process.stdout.once('close', end);
  return {
    signal: stop.signal,
    isLost: () => isLost,
    [Symbol.dispose]() {
      clearInterval(watch);
      process.off('SIGINT', endSoon);
      process.off('SIGTERM', endSoon);
      process.stdout.off('close', end);
    },
  };
}

/** Waits where the reader is slower than the log: what is read ahead is bounded by the follower. */
async function write(line: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || process.stdout.write(`${line}\n`)) return;
  // Rejects when the signal aborts, which the caller sees for itself.
  await once(process.stdout, 'drain', { signal }).catch(() => undefined);
}

/** The longest type there is, so that lines that come one by one stand in columns. */
const TYPE_WIDTH = Math.max(...eventTypes.map((type) => type.length));

function describe({ sequence, time, type, aggregate, cause, state }: RecordedEvent): string {
  const status = typeof state === 'object' && 'status' in state ? `  ${state.status}` : '';
  const actor = `${cause.actor.kind}:${cause.actor.id}`;
  const facts = [String(sequence).padStart(6), time, type.padEnd(TYPE_WIDTH)];
  return printable(`${facts.join('  ')}  ${nameOf(aggregate)}  ${actor}${status}`);
}

function nameOf(aggregate: AggregateRef): string {
  const parts = 'organizationId' in aggregate ? [aggregate.organizationId] : [];
  return [...parts, ...('id' in aggregate ? [aggregate.id] : [])].join('/');
}
