import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A secret that is made at the first start and kept in the data folder, readable by its owner
 * alone. Two processes that start at once get the same one: whoever creates the file has made it.
 * @param make what a new one looks like
 */
export async function keptSecret(
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
  if (kept === '') throw new Error(`${path} is empty; remove it to have a new one made`);
  return kept;
}

/**
 * Puts a new secret in the place of a kept one, whole or not at all. For the process that holds the
 * data folder's lock.
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
