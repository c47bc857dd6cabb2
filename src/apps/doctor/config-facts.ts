import { isProduction, secretNames, withSecretFiles } from '#src/kernel/config/secrets.ts';
import type { Config } from '#src/kernel/config/config.ts';
import type { ConfigFacts } from './facts.ts';

/** The facts that the configuration alone gives, and the secrets to check. */
export function configFactsOf(
  config: Config,
  given: Record<string, string | undefined>,
): ConfigFacts {
  const env = withSecretFiles(given);
  const secrets = secretNames.flatMap((name) => {
    const secret = env[name]?.trim() ?? '';
    return secret === '' ? [] : [[name, secret] as const];
  });
  return {
    isEmbedded: config.natsUrl === null,
    isProduction: isProduction(env),
    unisolated: config.browsers.unisolated,
    browsers: config.browsers.kind,
    hasProvisioner: config.roles.includes('provisioner'),
    secrets: new Map(secrets),
    links: [
      ...linksOf('NATS_URL', config.natsUrl, config.nats.credsFile !== null),
      ...linksOf('REDIS_URL', config.redisUrl, false),
    ],
  };
}

/** Loopback connections are left out: they cannot be eavesdropped from another machine. */
function linksOf(
  variable: string,
  address: string | null,
  hasFile: boolean,
): ConfigFacts['links'][number][] {
  const urls = (address ?? '').split(',').map((one) => URL.parse(one.trim()));
  const away = urls.find((url) => url !== null && !isLoopback(url.hostname));
  if (away === undefined || away === null) return [];
  const hasCredentials = hasFile || away.username !== '' || away.password !== '';
  return [{ variable, hasCredentials, isEncrypted: ['tls:', 'rediss:'].includes(away.protocol) }];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host.startsWith('127.');
}
