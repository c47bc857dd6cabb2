import { readHost } from '#src/kernel/domain/egress/hosts.ts';
import type { GatewayConfig } from './gateway.ts';
import { list, matching, type Values, variable } from './parse.ts';

const host = matching(
  (given) => given === '' || readHost(given) !== null,
  'is no name of a host and no address',
);

export const ownHostsVariables = {
  OWN_HOSTS: variable(
    list(host),
    '',
    'further hosts of this service, as a load balancer, separated by commas; webhooks and ' +
      'sessions with rules cannot reach these, this machine and the hosts of ' +
      'GATEWAY_URL, PUBLIC_GATEWAY_*_URL, NATS_URL and REDIS_URL',
  ),
} as const;

type Known = {
  gateway: Pick<GatewayConfig, 'publicWsUrl' | 'publicWssUrl' | 'internalUrl' | 'debuggerPorts'>;
  natsUrl: string | null;
  redisUrl: string | null;
};

/**
 * The hosts at which this service is reached, from outside and inside.
 * @throws BadConfig
 */
export function readOwnHosts(
  values: Values<typeof ownHostsVariables> & { HOST: string },
  { gateway, natsUrl, redisUrl }: Known,
): string[] {
  const given = values.OWN_HOSTS.filter((one) => one !== '');
  const urls = [gateway.publicWsUrl, gateway.publicWssUrl, gateway.internalUrl];
  const stores = [...(natsUrl?.split(',') ?? []), ...(redisUrl === null ? [] : [redisUrl])];
  const known = [...urls, ...stores].flatMap((url) => URL.parse(url.trim())?.hostname ?? []);
  const debuggers = gateway.debuggerPorts === null ? [] : [gateway.debuggerPorts.host];
  return [...new Set([...given, ...known, ...debuggers, values.HOST])];
}
