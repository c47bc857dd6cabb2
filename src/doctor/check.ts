import type { ConfigFacts, Facts, Trouble } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { judgeEngine } from './check-engine.ts';
import { judgeHost } from './check-host.ts';
import { judgeLog } from './check-event-store.ts';
import { judgeReadModel } from './check-read-model.ts';
import { judgeSecrets } from './check-secrets.ts';

/** All that is to be said about an installation, in the order in which it is put right. Pure. */
export function judge({ config, host, log, readModel, engine }: Facts): Finding[] {
  return [
    ...judgeHost(host),
    ...judgeSecrets(config),
    ...(isTrouble(log) ? away('log', log) : judgeLog(log, config)),
    ...(isTrouble(readModel) ? away('read-model', readModel) : judgeReadModel(readModel)),
    ...judgeBrowsers(config, engine),
  ];
}

function judgeBrowsers(config: ConfigFacts, engine: Facts['engine']): Finding[] {
  const { found, ok, warn } = findingsOf('browsers');
  if (!config.hasProvisioner) return found;
  if (engine !== null) return isTrouble(engine) ? away('browsers', engine) : judgeEngine(engine);
  if (config.browsers === 'simulated') {
    warn('kind', 'browsers are simulated', 'BROWSERS=docker runs real ones, each by itself');
  } else if (config.isProduction) {
    warn(
      'kind',
      'browsers are processes of this machine, not kept from each other',
      'BROWSERS=docker keeps sessions apart; only for development are processes enough',
    );
  } else ok('kind', 'browsers are processes of this machine: for development');
  return found;
}

function away(part: string, { trouble, advice, isBad }: Trouble): Finding[] {
  const { found, warn, bad } = findingsOf(part);
  (isBad ? bad : warn)('answers', trouble, advice);
  return found;
}

function isTrouble(facts: object): facts is Trouble {
  return 'trouble' in facts;
}
