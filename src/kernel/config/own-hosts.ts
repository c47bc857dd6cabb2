import { readHost } from '#src/kernel/domain/egress/hosts.ts';
import type { GatewayConfig } from './gateway.ts';
import { BadConfig, type Read } from './parse.ts';

export const ownHostsVariables = {
  OWN_HOSTS: {
    fallback: '',
    meaning:
      'further hosts of this service, as a load balancer, separated by commas; webhooks and ' +
      'sessions with rules cannot reach these, this machine and the hosts of ' +
      'GATEWAY_URL, PUBLIC_GATEWAY_*_URL, NATS_URL and REDIS_URL',
  },
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
  read: Read<keyof typeof ownHostsVariables | 'HOST'>,
  { gateway, natsUrl, redisUrl }: Known,
): string[] {
  const given = read('OWN_HOSTS')
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '');
  for (const text of given)
    if (readHost(text) === null)
      throw new BadConfig(`OWN_HOSTS: ${text} is no name of a host and no address`);
  const urls = [gateway.publicWsUrl, gateway.publicWssUrl, gateway.internalUrl];
  const stores = [...(natsUrl?.split(',') ?? []), ...(redisUrl === null ? [] : [redisUrl])];
  const known = [...urls, ...stores].flatMap((url) => URL.parse(url.trim())?.hostname ?? []);
  const debuggers = gateway.debuggerPorts === null ? [] : [gateway.debuggerPorts.host];
  return [...new Set([...given, ...known, ...debuggers, read('HOST')])];
}
