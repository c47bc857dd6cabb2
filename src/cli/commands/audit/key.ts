import { openAuditKey } from '#src/bootstrap/audit-key.ts';
import { readConfig } from '#src/config/config.ts';
import type { Command } from '../../command.ts';

export const showAuditKey: Command = {
  readAlone: () => async () => show(readConfig(process.env).dataDir),
  read: () => async (session) => show(session.config.dataDir),
};

async function show(dataDir: string) {
  const { fingerprint, publicKey } = await openAuditKey(dataDir);
  const text = [`fingerprint  ${fingerprint}`, `public key   ${JSON.stringify(publicKey)}`];
  return { json: { fingerprint, public_key: publicKey }, text: text.join('\n') };
}
