import { isDeepStrictEqual } from 'node:util';
import { isOf, type RecordedOf } from '#events/events.ts';
import { filterOf } from '#events/subjects.ts';
import { reject } from '#src/errors.ts';
import { decidePool, POLICY } from '#src/domain/fleet/pool-policy.ts';
import type { Command } from '../command.ts';
import { asId } from '../arguments.ts';
import { elapsed, layOut } from '../output.ts';
import { readEvents } from '../read-events.ts';

type Recorded = RecordedOf<'server'>;
type Resized = Extract<Recorded, { type: 'server.pool-resized' }>;

export const showServerHistory: Command = {
  name: 'servers history',
  summary: 'Show all that happened to a server, each change of its pool made again',
  operands: ['SERVER-ID'],
  options: {},
  read(given) {
    const id = given.operand(0, asId);
    return async ({ desk, warn }) => {
      const events: Recorded[] = [];
      for await (const event of readEvents(desk.log, [filterOf({ kind: 'server', id })], warn))
        if (isOf('server', event)) events.push(event);
      if (events.length === 0)
        return reject('NOT_FOUND', { server_id: id }, { message: 'There is no such server.' });
      const heads = ['SEQ', 'TIME', 'SINCE', 'EVENT', 'BY', 'WHAT'];
      const rows = events.map((event, at) => {
        const { sequence, time, type, cause } = event;
        const actor = `${cause.actor.kind}:${cause.actor.id}`;
        const since = elapsed(events[at - 1]?.time ?? time, time);
        return [String(sequence), time, since, type, actor, whatOf(event)];
      });
      return { json: events.map(present), text: layOut(heads, rows).join('\n') };
    };
  },
};

function present(event: Recorded) {
  const { sequence, time, type, data, state } = event;
  const replayed = event.type === 'server.pool-resized' ? { replayed: verdict(event) } : {};
  return { sequence, time, type, actor: event.cause.actor, data, state, ...replayed };
}

/** Whether today's rules decide the same on the same inputs. */
function verdict({
  data: { policy, inputs, decision },
}: Resized): 'same' | 'differs' | 'other rules' {
  if (policy !== POLICY) return 'other rules';
  return isDeepStrictEqual(decidePool(inputs), decision) ? 'same' : 'differs';
}

function whatOf(event: Recorded): string {
  switch (event.type) {
    case 'server.joined':
      return `${event.data.browsers}, at most ${event.data.poolMax}`;
    case 'server.pool-resized':
      return `${reasonOf(event)}; made again: ${verdict(event)}`;
    case 'server.reconciled': {
      const { adopted, stopped, failed, corrected, leaks } = event.data;
      return (
        `adopted ${adopted}, stopped ${stopped}, failed ${failed}, corrected ${corrected}; ` +
        `amiss: ${leaks.browsers} browsers, ${leaks.sessions} sessions`
      );
    }
    default:
      return '';
  }
}

function reasonOf({ data: { inputs, decision } }: Resized): string {
  const { arrivals10s, arrivals60s, launchMs, idle, busy, waiting } = inputs;
  const limit = decision.limitedBy === null ? '' : `, limited by ${decision.limitedBy}`;
  return (
    `${inputs.target} → ${decision.target} to wait${limit}: needs ${decision.need} at ` +
    `${arrivals10s} in 10 s and ${arrivals60s} in 60 s, a launch takes ${launchMs} ms; ` +
    `${idle} idle, ${busy} busy, ${waiting} waiting`
  );
}
