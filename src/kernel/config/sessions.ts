import { tierNames } from '#events/organization.ts';
import { defaultTiers, type Tiers } from '#src/kernel/domain/organization/tiers.ts';
import {
  BadConfig,
  duration,
  entries,
  integer,
  jsonEntries,
  oneOf,
  optional,
  variable,
  type Form,
  type Values,
} from './parse.ts';

/** What requests for a session wait for, and what sessions may have. Durations in milliseconds. */
export type SessionsConfig = {
  queue: { afterMs: number; timeoutMs: number; max: number; perOrganizationMax: number };
  maxLifetimeMs: number;
  tiers: Tiers;
};

const TIER_FIELDS = {
  requests_per_minute: 'requestsPerMinute',
  concurrent_sessions: 'concurrentSessions',
  credits: 'credits',
  queue_weight: 'queueWeight',
} as const;

const tiers: Form<Tiers> = {
  says: '',
  parse(given, name) {
    const read: Tiers = structuredClone(defaultTiers);
    for (const [tier, limits] of jsonEntries.parse(given, name)) {
      const tierName = oneOf(...tierNames).parse(tier, name);
      for (const [field, value] of entries(`${name}: ${tier}`, limits)) {
        const key = TIER_FIELDS[field as keyof typeof TIER_FIELDS];
        const least = key === 'queueWeight' ? 1 : 0;
        if (key === undefined || !Number.isSafeInteger(value) || Number(value) < least)
          throw new BadConfig(`${name}: ${tier}.${field}: ${String(value)}`);
        read[tierName][key] = Number(value);
      }
    }
    return read;
  },
};

export const sessionsVariables = {
  QUEUE_AFTER: variable(
    duration(),
    '1s',
    'a request that no server takes within this time is queued',
  ),
  QUEUE_TIMEOUT: variable(
    duration(),
    '5m',
    'a request that no server takes within this time fails',
  ),
  QUEUE_MAX: variable(
    integer(0, 1_000_000),
    '100',
    'waiting requests beyond which creates are refused',
  ),
  QUEUE_MAX_PER_ORGANIZATION: variable(
    optional(integer(0, 1_000_000)),
    '',
    'the same for one organization; empty: a third of QUEUE_MAX',
  ),
  MAX_LIFETIME: variable(duration('1m'), '72h', 'longest life of a session, extensions included'),
  TIERS: variable(
    tiers,
    '{}',
    'JSON that overrides limits of tiers, as {"pro":{"concurrent_sessions":50}}',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readSessions(values: Values<typeof sessionsVariables>): SessionsConfig {
  const { QUEUE_MAX: max } = values;
  return {
    queue: {
      afterMs: values.QUEUE_AFTER,
      timeoutMs: values.QUEUE_TIMEOUT,
      max,
      perOrganizationMax: values.QUEUE_MAX_PER_ORGANIZATION ?? Math.max(1, Math.floor(max / 3)),
    },
    maxLifetimeMs: values.MAX_LIFETIME,
    tiers: values.TIERS,
  };
}
