import { restoreBackup, takeBackup } from '#src/backup/backup.jetstream.ts';
import type { Manifest } from '#src/backup/manifest.ts';
import { findService } from './find-service.ts';
import { natsAccess } from './infrastructure.ts';
import type { Config } from '#src/config/config.ts';
import { lockDataDir } from '#src/embedded/data-dir.ts';
import { startEmbedded } from '#src/embedded/embedded.ts';
import { ensurePrograms } from '#src/embedded/programs.ts';
import { newAccountSeed, readIssuer } from '#src/tenants/nkey.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';

const READY_MS = 10_000;

/** A backup of the running service's log. @throws NoService, BadBackup, Error */
export async function backUp(config: Config, folder: string): Promise<Manifest> {
  const { natsUrl } = await findService(config);
  await using connection = await open(config, natsUrl, true);
  return await takeBackup(connection, folder);
}

/**
 * Gives a backup to the log at NATS_URL, else to that of DATA_DIR, which is started for it: there
 * no service may run. @throws DataDirInUse, BadBackup, Error
 */
export async function giveBack(
  config: Config,
  folder: string,
  say: (line: string) => void,
): Promise<Manifest> {
  if (config.natsUrl !== null) {
    await using connection = await open(config, config.natsUrl, false);
    return await restoreBackup(connection, folder);
  }
  const { dataDir } = config;
  await using stack = new AsyncDisposableStack();
  stack.use(await lockDataDir(dataDir));
  // Only so that its configuration is whole: nobody is let in meanwhile.
  const issuer = readIssuer(newAccountSeed());
  if (issuer === null) throw new Error('a new seed is none');
  const programs = await ensurePrograms(['nats-server'], say);
  const settings = {
    dataDir,
    natsServer: programs['nats-server'],
    nats: { host: '127.0.0.1', port: null, issuer: issuer.publicKey },
    onEvent: () => undefined,
  };
  const embedded = stack.use(await startEmbedded(settings));
  await using connection = await open(config, embedded.natsUrl ?? '', false);
  return await restoreBackup(connection, folder);
}

function open(config: Config, url: string, requiresLog: boolean) {
  const options = { url, name: 'bss', readyMs: READY_MS, makesStreams: false, requiresLog };
  return connectJetStream({ ...options, ...natsAccess(config) });
}
