import { join } from 'node:path';
import type { ServerAddition, ServerProcess } from '../feature.ts';
import { openProfileVault } from './profile-vault.ts';
import { openProfiles } from './server/open-profiles.ts';

export async function profilesOfServer(process: ServerProcess): Promise<ServerAddition> {
  const { config, context, objects, masterKeys, log } = process;
  const { bytesMax, versions: versionsKept } = config.profiles;
  const folder = join(config.dataDir, 'profiles');
  const vault = await openProfileVault({ objects, masterKeys, folder, bytesMax });
  const { eventStore } = context;
  return { openProfiles: openProfiles({ eventStore, vault, versionsKept, log }) };
}
