import { restoreBackup, takeBackup } from '#src/features/backup/backup.jetstream.ts';
import type { Manifest } from '#src/features/backup/manifest.ts';
import { findService } from './find-service.ts';
import { natsAccess } from '#src/kernel/config/stores.ts';
import type { Config } from '#src/kernel/config/config.ts';
import { lockDataDir } from '#src/start/embedded/data-dir.ts';
import { startEmbedded } from '#src/start/embedded/embedded.ts';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { newAccountSeed, readIssuer } from '#src/features/nats-tenants/nkey.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';

const READY_MS = 10_000;

/** Backs up the streams of the running service. @throws ServiceNotFoundError, BadBackup, Error */
export async function backUp(config: Config, folder: string): Promise<Manifest> {
  const { natsUrl } = await findService(config);
  await using connection = await open(config, natsUrl, true);
  return await takeBackup(connection, folder);
}

/**
 * Restores a backup to the event store at NATS_URL. Without NATS_URL it starts the embedded
 * nats-server on DATA_DIR, where no service may run. @throws DataDirInUse, BadBackup, Error
 */
export async function restore(
  config: Config,
  folder: string,
  print: (line: string) => void,
): Promise<Manifest> {
  if (config.natsUrl !== null) {
    await using connection = await open(config, config.natsUrl, false);
    return await restoreBackup(connection, folder);
  }
  const { dataDir } = config;
  await using stack = new AsyncDisposableStack();
  stack.use(await lockDataDir(dataDir));
  // The server's configuration requires an issuer; it admits no tenant during the restore.
  const issuer = readIssuer(newAccountSeed());
  if (issuer === null) throw new Error('the generated account seed is not valid');
  const programs = await ensurePrograms(['nats-server'], print);
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
