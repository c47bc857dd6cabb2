import { reject } from '../errors.ts';
import { sequenceAt } from '../log/past.ts';
import type { Command } from './command.ts';
import { Misuse } from './errors.ts';
import { asId, asTime, asWhole } from './arguments.ts';
import { layOut } from './output.ts';
import { presentStep, readSteps, type Step } from './commands/session-at.ts';

export const showSessionAt: Command = {
  name: 'session at',
  summary: 'Show a session as it was at a moment of the past',
  operands: ['SESSION-ID'],
  options: {
    time: { value: 'T', meaning: "RFC 3339, by the event log's clock; its millisecond counts" },
    seq: { value: 'SEQ', meaning: 'after this event of the log, whosever it is' },
  },
  read(given) {
    const id = given.operand(0, asId);
    const time = given.optional('time', asTime);
    const sequence = given.optional('seq', asWhole(1, Number.MAX_SAFE_INTEGER));
    if ((time === null) === (sequence === null)) throw new Misuse('one of --time, --seq is needed');
    return async ({ desk, warn }) => {
      if (time !== null && time > desk.now()) return future({ time: new Date(time).toISOString() });
      const upTo = sequence ?? (await sequenceAt(desk, time ?? 0));
      if (upTo > (await desk.log.lastSequence())) return future({ sequence: upTo });
      return showAt(id, upTo, await readSteps(desk.log, id, warn));
    };
  },
};

function future(context: Record<string, unknown>) {
  return reject('INVALID_REQUEST', context, { message: 'The log does not reach that far yet.' });
}

function showAt(id: string, upTo: number, steps: readonly Step[]) {
  const step = steps.findLast(({ event }) => event.sequence <= upTo);
  const [first] = steps;
  if (step === undefined && first !== undefined)
    return reject(
      'SESSION_NOT_FOUND',
      { session_id: id },
      { message: `It began later, with event ${first.event.sequence} at ${first.event.time}.` },
    );
  if (step === undefined) return reject('SESSION_NOT_FOUND', { session_id: id });
  const { event, state } = step;
  const fields = Object.entries(state).map(([field, value]) => [field, JSON.stringify(value)]);
  const rows = [['LAST EVENT', `${event.type} (${event.sequence}) at ${event.time}`], ...fields];
  return { json: presentStep(step), text: layOut(['AS OF', String(upTo)], rows).join('\n') };
}
