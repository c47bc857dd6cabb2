import { secretNames, weaknessOf } from '#src/config/secrets.ts';
import type { ConfigFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

/** Whether secrets are secrets. Pure. */
export function judgeSecrets(config: ConfigFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('secrets');
  const worse = config.isProduction ? bad : warn;
  for (const name of secretNames) {
    const secret = config.secrets.get(name);
    if (secret === undefined) continue;
    const weakness = weaknessOf(name, secret);
    if (weakness === null) ok('strength', `${name} is strong enough`);
    else
      worse(
        'strength',
        `${name} might be guessed: ${weakness}`,
        `openssl rand -base64 36 makes one; deploy/README.md tells how ${name} is rotated`,
      );
  }
  for (const { variable, hasCredentials, isEncrypted } of config.links) {
    if (!hasCredentials)
      worse(
        'credentials',
        `${variable} leads to another machine, without credentials`,
        `a user and its password beside ${variable}`,
      );
    if (!isEncrypted)
      warn(
        'encryption',
        `${variable} leads to another machine in the open`,
        'tls:// for NATS, rediss:// for Redis; a private network of containers may do without',
      );
    if (hasCredentials && isEncrypted)
      ok('encryption', `${variable} has credentials and is encrypted`);
  }
  if (config.isProduction && config.secrets.has('DEV_API_KEY'))
    warn(
      'development-key',
      'DEV_API_KEY opens an organization of its own, with ample credits',
      'leave it out: bss orgs create and bss keys issue make what is needed',
    );
  return found;
}
