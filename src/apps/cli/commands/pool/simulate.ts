import { availableParallelism } from 'node:os';
import { filters } from '#events/subjects.ts';
import { spanOf } from '#src/kernel/billing/usage.ts';
import { policies } from '#src/kernel/domain/fleet/pool-policy.ts';
import type { PoolFigures } from '#src/kernel/domain/fleet/pool-figures.ts';
import { simulatePool, type SimulatedLimits } from '#src/kernel/domain/fleet/simulate-pool.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { integer, parseId, parseTimeOrDate } from '../../arguments.ts';
import type { Command, CommandSession, Output } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { POOL_DAYS_MAX } from '../../limits.ts';
import { formatTable } from '../../output.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { readPoolUse, type RecordedUse } from './recorded-use.ts';

const DAY_MS = 24 * 60 * 60_000;
/** They are kept in memory. */
const REQUESTS_MAX = 500_000;
const BROWSERS_MAX = 1_000_000;
/** Where no launch was recorded; what the provisioner expects of its first one. */
const LAUNCH_MS = 1_000;

type Asked = {
  from: number;
  to: number | null;
  server: string | null;
  policy: number | null;
  min: number | null;
  max: number | null;
};

export const simulatePoolCommand: Command = {
  read(options) {
    const asked: Asked = {
      from: options.required('from', parseTimeOrDate),
      to: options.optional('to', parseTimeOrDate),
      server: options.optional('server', parseId),
      policy: options.optional('policy', parsePolicy),
      min: options.optional('min', integer(0, BROWSERS_MAX)),
      max: options.optional('max', integer(1, BROWSERS_MAX)),
    };
    checkTime(asked.from, asked.to);
    if (asked.min !== null && asked.max !== null && asked.min > asked.max)
      throw new UsageError('--min is more than --max');
    return (session) => simulate(session, asked);
  },
};

function parsePolicy(text: string): number {
  const version = policies.find((known) => String(known) === text);
  if (version === undefined) throw new UsageError(`is none of ${policies.join(', ')}`);
  return version;
}

function checkTime(from: number, to: number | null): void {
  if (to !== null && from >= to) throw new UsageError('--from is not before --to');
  if (to !== null && to - from > POOL_DAYS_MAX * DAY_MS)
    throw new UsageError(`--to is more than ${POOL_DAYS_MAX} days after --from`);
}

async function simulate(session: CommandSession, asked: Asked): Promise<Output | Rejection> {
  const { context, config, warn } = session;
  const { from } = asked;
  const to = Math.min(asked.to ?? Infinity, context.now());
  checkTime(from, to);
  const span = await spanOf(context.eventStore, from, to);
  const use = readPoolUse(from, to);
  for await (const event of readEvents(context.eventStore, filters.poolUse, warn, span)) {
    use.take(event);
    if (use.count() > REQUESTS_MAX)
      return refuse(`there are more than ${REQUESTS_MAX} requests: take a shorter time`);
  }
  const server = chooseServer(use.servers(), asked.server);
  if (isRejection(server)) return server;
  const recorded = use.of(server.id);
  const limits = limitsOf(recorded, asked, config.pool);
  if (limits.minIdle > limits.max)
    return refuse(`--min: ${limits.minIdle} is more than POOL_MAX, ${limits.max}: give --max, too`);
  const { requests } = recorded;
  const simulated = (asked.policy === null ? policies : [asked.policy]).map((policy) => ({
    policy,
    figures: simulatePool({ requests, limits, policy, countFrom: from, until: to }),
  }));
  const rows = [{ policy: null, figures: recorded.figures }, ...simulated];
  return present({ from, to, serverId: server.id, limits, rows, unserved: use.unserved() });
}

function refuse(message: string): Rejection {
  return reject('INVALID_REQUEST', {}, { message });
}

function chooseServer(
  servers: readonly string[],
  asked: string | null,
): { id: string } | Rejection {
  const [first] = servers;
  if (asked !== null && servers.includes(asked)) return { id: asked };
  if (first === undefined || asked !== null) {
    const message =
      asked === null ? 'No request was served in this time.' : `Server ${asked} served none.`;
    return reject('NOT_FOUND', {}, { message });
  }
  if (servers.length === 1) return { id: first };
  return refuse(`several servers served requests, name one with --server: ${servers.join(', ')}`);
}

/** What was asked for, else the limits of the last recorded decision, else those of this host. */
function limitsOf(
  { launchMs, lastInputs }: RecordedUse,
  asked: Asked,
  configured: { minIdle: number; maxIdle: number; max: number },
): SimulatedLimits {
  const known = lastInputs ?? configured;
  const max = asked.max ?? known.max;
  const minIdle = asked.min ?? known.minIdle;
  return {
    minIdle,
    maxIdle: asked.max === null ? Math.max(minIdle, known.maxIdle) : max,
    max,
    launchesAtOnce: lastInputs?.launchesAtOnce ?? availableParallelism(),
    launchMs: launchMs ?? LAUNCH_MS,
  };
}

type Row = { policy: number | null; figures: PoolFigures };

function present(result: {
  from: number;
  to: number;
  serverId: string;
  limits: SimulatedLimits;
  rows: readonly Row[];
  unserved: number;
}): Output {
  const { from, to, serverId, limits, rows, unserved } = result;
  const { minIdle, maxIdle, max, launchesAtOnce, launchMs } = limits;
  const json = {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    server_id: serverId,
    unserved,
    min_idle: minIdle,
    max_idle: maxIdle,
    max,
    launches_at_once: launchesAtOnce,
    launch_ms: launchMs,
    rows: rows.map(({ policy, figures }) => ({
      policy,
      creates: figures.creates,
      warm: figures.warm,
      wait_p50_ms: figures.waitP50Ms,
      wait_p95_ms: figures.waitP95Ms,
      idle_hours: figures.idleHours,
      mean_idle: figures.meanIdle,
      mean_in_use: figures.meanInUse,
    })),
  };
  const heads = ['POOL', 'CREATES', 'WARM', 'WAIT P50', 'P95', 'IDLE HOURS', 'MEAN', 'IN USE'];
  const text = [
    ...formatTable(heads, rows.map(cellsOf)),
    '',
    `Server ${serverId}; simulated with ${minIdle} to ${maxIdle} idle of at most ${max} ` +
      `browsers, ${launchesAtOnce} launches at once of ${launchMs} ms.`,
    ...(unserved === 0 ? [] : [`${unserved} requests got no browser in this time: left out.`]),
  ];
  return { json, text: text.join('\n') };
}

function cellsOf({ policy, figures }: Row): string[] {
  const { creates, warm, waitP50Ms, waitP95Ms, idleHours, meanIdle, meanInUse } = figures;
  const share = creates === 0 ? '–' : `${((100 * warm) / creates).toFixed(1)} %`;
  return [
    policy === null ? 'recorded' : `policy ${policy}`,
    String(creates),
    share,
    `${Math.round(waitP50Ms)} ms`,
    `${Math.round(waitP95Ms)} ms`,
    idleHours.toFixed(2),
    meanIdle.toFixed(2),
    meanInUse.toFixed(2),
  ];
}
