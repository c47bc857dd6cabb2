import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The file that describes a backup; the folder also has one file per stream. */
export type Manifest = {
  format: 'bss-backup-1';
  /** ISO 8601 UTC. */
  takenAt: string;
  natsVersion: string;
  /** In the order of the backup and of the restore: OBJECTS last, EVENTS before it. */
  streams: StreamBackup[];
};

export type StreamBackup = {
  name: string;
  /** The configuration as the server returned it; a restore sends it back. */
  config: Record<string, unknown>;
  state: { messages: number; first_seq: number; last_seq: number } & Record<string, unknown>;
  file: string;
  bytes: number;
  sha256: string;
  consumers: ConsumerBackup[];
};

/** A durable consumer, and the sequence up to which it had acknowledged all messages. */
export type ConsumerBackup = { config: Record<string, unknown>; doneUpTo: number };

/** The folder is not a backup, or an incomplete one; the message has the reason. */
export class BadBackup extends Error {
  override readonly name = 'BadBackup';
}

const FILE = 'manifest.json';

/** Writes the manifest, atomically and last: a folder without it is not a backup. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const path = join(folder, FILE);
  await writeFile(`${path}.new`, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Reads the manifest and verifies the checksum of every file. @throws BadBackup */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, FILE), 'utf8').catch((error: unknown) => {
    const message = `${folder} has no ${FILE}: it is not a backup, or an unfinished one`;
    throw new BadBackup(message, { cause: error });
  });
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== 'bss-backup-1')
    throw new BadBackup(`${folder} has the unknown format ${String(manifest.format)}`);
  for (const { file, sha256 } of manifest.streams)
    if ((await hashOf(join(folder, file))) !== sha256)
      throw new BadBackup(`${join(folder, file)} differs from what the backup wrote`);
  return manifest;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  } catch (error) {
    throw new BadBackup(`${path} cannot be read: ${String(error)}`, { cause: error });
  }
  return hash.digest('hex');
}
