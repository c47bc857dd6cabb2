import { openAuditKey, type KeyPlace } from '#src/start/audit-key.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import type { Command } from '../../command.ts';

export const showAuditKey: Command = {
  readAlone: () => async () => show(readConfig(process.env)),
  read: () => async (session) => show(session.config),
};

async function show(place: KeyPlace) {
  const { fingerprint, publicKey } = await openAuditKey(place);
  const text = [`fingerprint  ${fingerprint}`, `public key   ${JSON.stringify(publicKey)}`];
  return { json: { fingerprint, public_key: publicKey }, text: text.join('\n') };
}
