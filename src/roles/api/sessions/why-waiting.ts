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
  if (live.length === 0) {
    const drain = servers.length === 1 ? '1 server drains' : `${servers.length} servers drain`;
    return servers.length === 0 ? 'No server is live.' : `No server is live: ${drain}.`;
  }
  const max = live.reduce((sum, { poolMax }) => sum + poolMax, 0);
  const limits = [...new Set(live.flatMap(({ limitedBy }) => limitedBy ?? []))];
  const by = limits.length === 0 ? '' : `, limited by ${limits.join(' and ')}`;
  return `${stateOf()}: ${browsers} of ${max} browsers run.`;

  function stateOf(): string {
    if (idle > 0) return 'A browser is idle and about to be assigned';
    if (browsers >= max) return `All servers are full${by}`;
    return by === '' ? 'A browser is being launched' : `The servers launch no further browser${by}`;
  }
}
