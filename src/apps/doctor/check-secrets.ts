import { secretNames, weaknessOf } from '#src/kernel/config/secrets.ts';
import type { ConfigFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

/** Findings about the strength of secrets and the protection of connections. Pure. */
export function checkSecrets(config: ConfigFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('secrets');
  const badInProduction = config.isProduction ? bad : warn;
  for (const name of secretNames) {
    const secret = config.secrets.get(name);
    if (secret === undefined) continue;
    const weakness = weaknessOf(name, secret);
    if (weakness === null) ok('strength', `${name} is strong enough`);
    else
      badInProduction(
        'strength',
        `${name} might be guessed: ${weakness}`,
        `generate one with openssl rand -base64 36; deploy/runbook.md: how to rotate it`,
      );
  }
  for (const { variable, hasCredentials, isEncrypted } of config.links) {
    if (!hasCredentials)
      badInProduction(
        'credentials',
        `${variable} leads to another machine without credentials`,
        `set a user and a password for ${variable}`,
      );
    if (!isEncrypted)
      warn(
        'encryption',
        `${variable} leads to another machine without TLS`,
        'use tls:// for NATS, rediss:// for Redis; a private container network may do without',
      );
    if (hasCredentials && isEncrypted)
      ok('encryption', `${variable} has credentials and is encrypted`);
  }
  if (config.isProduction && config.secrets.has('DEV_API_KEY'))
    warn(
      'development-key',
      'DEV_API_KEY gives access to a development organization with many credits',
      'unset it; use bss orgs create and bss keys issue',
    );
  return found;
}
