import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Reads a secret from the data folder; the first start creates it, readable only by its owner. Two
 * processes that start at once get the same secret: the file is created exclusively.
 * @param make generates a new secret
 */
export async function loadOrCreateSecret(
  dataDir: string,
  name: string,
  make: () => string,
): Promise<string> {
  const path = join(dataDir, name);
  try {
    await using file = await open(path, 'wx', 0o600);
    const secret = make();
    await file.writeFile(`${secret}\n`);
    await file.sync();
    return secret;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const kept = (await readFile(path, 'utf8')).trim();
  if (kept === '')
    throw new Error(`${path} is empty; remove it, and the next start creates a new one`);
  return kept;
}

/**
 * Replaces a secret atomically. The caller must hold the lock of the data folder.
 */
export async function replaceSecret(dataDir: string, name: string, secret: string): Promise<void> {
  const path = join(dataDir, name);
  {
    await using file = await open(`${path}.new`, 'w', 0o600);
    await file.writeFile(`${secret}\n`);
    await file.sync();
  }
  await rename(`${path}.new`, path);
}

/** 256 random bits. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
