import { isDeepStrictEqual } from 'node:util';
import { isOf, type RecordedOf } from '#events/events.ts';
import type { LaunchedBuild, ServerState } from '#events/server.ts';
import { streamFilter } from '#events/subjects.ts';
import { decidePool, policies } from '#src/kernel/domain/fleet/pool-policy.ts';
import type { ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { describeActor } from '#src/kernel/history/describe-actor.ts';
import { handleServerCommand, presentServer, readServers } from '#src/commands/operator/servers.ts';
import { parseId } from '../arguments.ts';
import type { Command } from '../command.ts';
import { interruptible } from '../interruptible.ts';
import { operatorMetadata } from '../operator.ts';
import { formatElapsed, formatTable } from '../output.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

export const listServers: Command = {
  read(options) {
    const isAll = options.has('all');
    return async ({ context, warn }) => {
      const known = await readServers(context.eventStore, warn);
      const shown = known.filter(({ status }) => isAll || (status !== 'left' && status !== 'lost'));
      const json = shown.map(presentServer);
      const heads = [
        'SERVER',
        'STATUS',
        'IP',
        'MAX',
        'IDLE TARGET',
        'LIMITED BY',
        'LEAKS',
        'BROWSER',
      ];
      const rows = json.map((one) => {
        const known = [one.target, one.limited_by, one.leaks, one.browser];
        const cells = known.map((value) => String(value ?? '–'));
        return [one.id, one.status, one.ip, String(one.pool_max), ...cells];
      });
      return { json, text: formatTable(heads, rows).join('\n') };
    };
  },
};

export const drainServer: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    const drain = changeDraining(id, { type: 'Drain' });
    if (!options.has('wait')) return drain;
    return async (session) => {
      const drained = await drain(session);
      if (drained === null || isRejection(drained)) return drained;
      const status = await interruptible((signal) => untilEmpty(session.context, id, signal));
      return { json: { id, status }, text: `server ${id} is ${status}` };
    };
  },
};

const LOOK_EVERY_MS = 1_000;

/** @returns its status once the server has no session and no browser any more */
async function untilEmpty(
  { eventStore }: CommandContext,
  id: string,
  signal: AbortSignal,
): Promise<ServerState['status']> {
  for (;;) {
    const { state } = await loadState<'server'>(
      eventStore,
      { kind: 'server', id },
      { fromLeader: true },
    );
    const status = state?.status ?? 'left';
    if (status !== 'draining') return status;
    await sleep(LOOK_EVERY_MS, signal);
  }
}

export const undrainServer: Command = {
  read: (options) => changeDraining(options.operand(0, parseId), { type: 'Undrain' }),
};

function changeDraining(id: string, command: ServerCommand): ReturnType<Command['read']> {
  return async ({ context }) => {
    const state = await handleServerCommand(context, id, command, operatorMetadata());
    if (isRejection(state)) return state;
    return {
      json: { id, status: state.status },
      text: `server ${id} is ${state.status}`,
    };
  };
}

type Recorded = RecordedOf<'server'>;
type Resized = Extract<Recorded, { type: 'server.pool-resized' }>;

export const showServerHistory: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    return async ({ context, warn }) => {
      const events: Recorded[] = [];
      for await (const event of readEvents(
        context.eventStore,
        [streamFilter({ kind: 'server', id })],
        warn,
      ))
        if (isOf('server', event)) events.push(event);
      if (events.length === 0)
        return reject('NOT_FOUND', { server_id: id }, { message: 'There is no such server.' });
      const heads = ['SEQ', 'TIME', 'SINCE', 'EVENT', 'BY', 'WHAT'];
      const rows = events.map((event, at) => {
        const { sequence, time, type, metadata } = event;
        const actor = describeActor(metadata.actor);
        const since = formatElapsed(events[at - 1]?.time ?? time, time);
        return [String(sequence), time, since, type, actor, describeEvent(event)];
      });
      return { json: events.map(presentEvent), text: formatTable(heads, rows).join('\n') };
    };
  },
};

function presentEvent(event: Recorded) {
  const { sequence, time, type, data, state } = event;
  const replayed =
    event.type === 'server.pool-resized' ? { replayed: replayedDecision(event) } : {};
  return { sequence, time, type, actor: event.metadata.actor, data, state, ...replayed };
}

/** Whether the policy of the record decides the same for the recorded inputs. */
function replayedDecision({
  data: { policy, inputs, decision },
}: Resized): 'same' | 'differs' | 'other rules' {
  if (!policies.includes(policy)) return 'other rules';
  return isDeepStrictEqual(decidePool(inputs, policy), decision) ? 'same' : 'differs';
}

function describeEvent(event: Recorded): string {
  switch (event.type) {
    case 'server.joined':
      return describeJoin(event);
    case 'server.browser-updated':
      return `new browsers: ${describeBuild(event.data)}`;
    case 'server.pool-resized':
      return `${describeResize(event)}; replayed: ${replayedDecision(event)}`;
    case 'server.reconciled': {
      const { adopted, stopped, failed, corrected, leaks } = event.data;
      return (
        `adopted ${adopted}, stopped ${stopped}, failed ${failed}, corrected ${corrected}; ` +
        `leaks: ${leaks.browsers} browsers, ${leaks.sessions} sessions`
      );
    }
    case 'server.carried-forward':
      return `events up to ${event.data.archivedUpTo} are archived`;
    default:
      return '';
  }
}

type Joined = Extract<Recorded, { type: 'server.joined' }>;

function describeJoin({ data: { browsers, poolMax, browser } }: Joined): string {
  const build = browser === undefined ? '' : ` (${describeBuild(browser)})`;
  return `${browsers}${build}, at most ${poolMax}`;
}

function describeBuild({ version, builtAt }: LaunchedBuild): string {
  return builtAt === undefined ? version : `${version} of ${builtAt.slice(0, 10)}`;
}

function describeResize({ data: { inputs, decision } }: Resized): string {
  const { arrivals10s, arrivals60s, launchMs, idle, busy, waiting } = inputs;
  const limit = decision.limitedBy === null ? '' : `, limited by ${decision.limitedBy}`;
  return (
    `idle target ${inputs.target} → ${decision.target}${limit}: need ${decision.need}, ` +
    `arrivals ${arrivals10s} in 10 s and ${arrivals60s} in 60 s, a launch takes ${launchMs} ms; ` +
    `${idle} idle, ${busy} busy, ${waiting} waiting`
  );
}
