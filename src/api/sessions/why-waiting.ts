import type { Waiting } from '../time-travel/waiting-line.ts';

/** What is known of a server, for the reason why a session waits. */
export type ServerRoom = {
  status: 'live' | 'draining' | 'drained';
  poolMax: number;
  limitedBy: 'memory' | 'cpu' | null;
};

/** The pool as the read model has it. */
export type PoolFacts = {
  servers: readonly ServerRoom[];
  /** Browsers of all states. */
  browsers: number;
  /** Browsers that wait for a session. */
  idle: number;
};

/** Why a session waits, in sentences. @param before how many sessions wait longer */
export function whyWaiting(
  { returned }: Pick<Waiting, 'returned'>,
  before: number,
  facts: PoolFacts,
): string {
  const sentences = [
    ...(returned === null
      ? []
      : [`Server ${returned.serverId} gave it back: ${returned.detail.replace(/\.?$/, '.')}`]),
    roomSentence(facts),
    ...(before === 0
      ? []
      : [`${before} ${before === 1 ? 'session waits' : 'sessions wait'} before it.`]),
  ];
  return sentences.join(' ');
}

function roomSentence({ servers, browsers, idle }: PoolFacts): string {
  const live = servers.filter(({ status }) => status === 'live');
  if (live.length === 0)
    return servers.length === 0
      ? 'No server is live.'
      : `No server is live: ${servers.length} drain.`;
  const max = live.reduce((sum, { poolMax }) => sum + poolMax, 0);
  const limits = [...new Set(live.flatMap(({ limitedBy }) => limitedBy ?? []))];
  const by = limits.length === 0 ? '' : `, limited by ${limits.join(' and ')}`;
  const of = `${browsers} of ${max} browsers`;
  if (idle > 0) return `The pool has an idle browser (${of}${by}).`;
  if (browsers >= max) return `All servers are full (${of}${by}).`;
  return limits.length > 0
    ? `The servers launch no further browser (${of}${by}).`
    : `A browser is launched for it or for those before it (${of}).`;
}
