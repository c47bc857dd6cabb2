import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a backup's folder holds: this, and one file a stream. */
export type Manifest = {
  format: 'bss-backup-1';
  /** ISO 8601 UTC. */
  takenAt: string;
  natsVersion: string;
  /** In the order in which they were taken, and are restored: EVENTS last. */
  streams: StreamBackup[];
};

export type StreamBackup = {
  name: string;
  /** The server's own words, given back to it. */
  config: Record<string, unknown>;
  state: { messages: number; first_seq: number; last_seq: number } & Record<string, unknown>;
  file: string;
  bytes: number;
  sha256: string;
  consumers: ConsumerBackup[];
};

/** A durable consumer, and up to where all of it had been done when the backup began. */
export type ConsumerBackup = { config: Record<string, unknown>; doneUpTo: number };

/** The folder is no backup, or not whole; the message says of what. */
export class BadBackup extends Error {
  override readonly name = 'BadBackup';
}

const FILE = 'manifest.json';

/** Written last, and at once: a folder without it is no backup. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const path = join(folder, FILE);
  await writeFile(`${path}.new`, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Reads it and holds every file against it. @throws BadBackup */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, FILE), 'utf8').catch((error: unknown) => {
    const message = `${folder} has no ${FILE}: it is no backup, or was never finished`;
    throw new BadBackup(message, { cause: error });
  });
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== 'bss-backup-1')
    throw new BadBackup(`${folder} has the format ${String(manifest.format)}: of another version`);
  for (const { file, sha256 } of manifest.streams)
    if ((await hashOf(join(folder, file))) !== sha256)
      throw new BadBackup(`${join(folder, file)} is not what the backup wrote`);
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
