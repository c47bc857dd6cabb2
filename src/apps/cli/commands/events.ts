import { once } from 'node:events';
import { toOperatorEvent } from '#events/public-event.ts';
import type { RecordedEvent } from '#events/events.ts';
import { filters, filtersFor, type AggregateRef } from '#events/subjects.ts';
import { reject } from '#src/kernel/errors.ts';
import { describeActor } from '#src/kernel/history/describe-actor.ts';
import { parseId, oneOf, integer, eventTypes } from '../arguments.ts';
import type { Command, CommandSession } from '../command.ts';
import { UsageError, InterruptedError } from '../errors.ts';
import { printable } from '../output.ts';
import { describeUnreadable, readEvents } from '#src/kernel/event-store/read-events.ts';

export const tailEvents: Command = {
  read(options) {
    const organizationId = options.optional('org', parseId);
    const type = options.optional('type', oneOf(eventTypes));
    const subjects = filtersFor(organizationId, type);
    if (subjects.length === 0)
      throw new UsageError(`${type} is not an event type of an organization`);
    const after = options.optional('from', parsePosition) ?? 'end';
    const limit = options.optional('limit', integer(1, Number.MAX_SAFE_INTEGER)) ?? Infinity;
    return async (session) => {
      await tail(session, { subjects, after, limit });
      return null;
    };
  },
};

/** The sequence before the first event to print; `start` is 0. */
function parsePosition(text: string): number {
  return text === 'start' ? 0 : integer(1, Number.MAX_SAFE_INTEGER)(text) - 1;
}

type TailOptions = { subjects: readonly string[]; after: number | 'end'; limit: number };

/** @throws ServiceNotFoundError if the event store was unavailable for 30 s */
async function tail(
  { context, isConnected, isJson, warn }: CommandSession,
  { subjects, after, limit }: TailOptions,
): Promise<void> {
  using ending = watchForEnd(isConnected);
  const { signal } = ending;
  const events = context.eventStore.subscribe({
    subjects,
    after,
    signal,
    onUnreadable: (poison) => warn(describeUnreadable(poison)),
  });
  let left = limit;
  for await (const batch of events) {
    for (const event of batch) {
      await write(isJson ? JSON.stringify(toOperatorEvent(event)) : describe(event), signal);
      left -= 1;
      if (left === 0 || signal.aborted) break;
    }
    if (left === 0 || signal.aborted) break;
  }
  if (ending.isLost()) throw new InterruptedError('the connection to the event store is lost');
}

/** Twice as long as an embedded nats-server takes to recover. */
const AWAY_MAX_MS = 30_000;
/** From Ctrl-C to the exit. Output that a blocked reader has not taken by then is dropped. */
const END_WITHIN_MS = 1_000;

/** Aborts at Ctrl-C, when stdout closes, and when the event store is unavailable for too long. */
function watchForEnd(isConnected: () => boolean) {
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

/** Writes a line and waits for a slow reader; the subscription bounds what is read ahead. */
async function write(line: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || process.stdout.write(`${line}\n`)) return;
  // Rejects when the signal aborts; the caller checks the signal.
  await once(process.stdout, 'drain', { signal }).catch(() => undefined);
}

/** The length of the longest type, so that lines printed one by one align. */
const TYPE_WIDTH = Math.max(...eventTypes.map((type) => type.length));

function describe({ sequence, time, type, aggregate, metadata, state }: RecordedEvent): string {
  const status = state !== null && 'status' in state ? `  ${state.status}` : '';
  const actor = describeActor(metadata.actor);
  const facts = [String(sequence).padStart(6), time, type.padEnd(TYPE_WIDTH)];
  return printable(`${facts.join('  ')}  ${aggregateName(aggregate)}  ${actor}${status}`);
}

function aggregateName(aggregate: AggregateRef): string {
  const parts = 'organizationId' in aggregate ? [aggregate.organizationId] : [];
  return [...parts, ...('id' in aggregate ? [aggregate.id] : [])].join('/');
}

export const showEvent: Command = {
  read(options) {
    const sequence = options.operand(0, integer(1, Number.MAX_SAFE_INTEGER));
    return async ({ context, warn }) => {
      const nothing = reject(
        'NOT_FOUND',
        { sequence },
        { message: 'The event store has no such event.' },
      );
      if (sequence > (await context.eventStore.lastSequence())) return nothing;
      const range = { after: sequence - 1, upTo: sequence };
      for await (const event of readEvents(context.eventStore, filters.all, warn, range)) {
        const json = toOperatorEvent(event);
        const lines = JSON.stringify(json, null, 2).split('\n');
        return { json, text: lines.map(printable).join('\n') };
      }
      return nothing;
    };
  },
};
