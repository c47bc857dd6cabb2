import { newMetadata } from '#src/commands/metadata.ts';
import { ensureOrganization } from '#src/commands/register-organization.ts';
import { loadOrCreateSecret, replaceSecret } from '#src/start/embedded/secrets.ts';
import { problemBody } from '#src/kernel/errors.ts';
import { hashKey, newApiKey } from '#src/kernel/ids.ts';
import type { Infrastructure } from './infrastructure.ts';

/** The organization that a start with an embedded event store creates. */
const DEV = { id: 'dev', name: 'Development', tier: 'max' } as const;
const DEV_KEY = { keyId: 'key_dev', role: 'owner', userId: 'dev' } as const;
const DEV_KEY_FILE = 'dev-api-key';

/** The API key of the organization dev, or why there is none. */
export type DevelopmentAccess = { apiKey: string } | { refusal: string };

/**
 * Creates the development organization and its key if the event store is embedded or DEV_API_KEY is
 * set. A revoked key stays revoked: a generated one is replaced, for DEV_API_KEY a warning is
 * logged. Called before the API reads the keys, so that its first request may have this one.
 * @returns the key or why there is none; null if no text is to be printed
 */
export async function issueDevelopmentKey({
  config,
  context,
  log,
  print,
}: Infrastructure): Promise<DevelopmentAccess | null> {
  const isEmbedded = config.natsUrl === null;
  const { dataDir, devApiKey: named } = config;
  // If each role has its own NATS user, only that of the api may append organization events.
  if (!isEmbedded && (named === null || !config.roles.includes('api'))) return null;
  const { credits } = config.tiers[DEV.tier];
  const issue = (apiKey: string) =>
    ensureOrganization(context, { ...DEV, credits }, { ...DEV_KEY, hash: hashKey(apiKey) }, () =>
      newMetadata('start'),
    );
  let apiKey = named ?? (await loadOrCreateSecret(dataDir, DEV_KEY_FILE, () => newApiKey(DEV.id)));
  let outcome = await issue(apiKey);
  if (outcome === 'revoked' && named === null) {
    print('The development key was revoked; a new one was generated.');
    apiKey = newApiKey(DEV.id);
    await replaceSecret(dataDir, DEV_KEY_FILE, apiKey);
    outcome = await issue(apiKey);
  }
  if (outcome === 'open') return isEmbedded ? { apiKey } : null;
  const refusal =
    outcome === 'revoked'
      ? 'The key in DEV_API_KEY was revoked: set another one, or unset the variable.'
      : `The key of the organization "${DEV.id}" was not issued: ${problemBody(outcome).message}`;
  log.warn(refusal);
  return isEmbedded ? { refusal } : null;
}
