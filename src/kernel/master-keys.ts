import { hkdfSync } from 'node:crypto';

/** A key with its id, which tells nothing of the key. */
export type MasterKey = { id: Buffer; bytes: Uint8Array };

/**
 * The master keys of a service. The first one is current: what is made is made with it. The others
 * are older, and open what was made with them until it has been made again.
 */
export type MasterKeys = { current: MasterKey; all: readonly MasterKey[] };

export const MASTER_KEYS_MAX = 5;
export const MASTER_KEY_ID_BYTES = 8;
const KEY_BYTES_MIN = 16;

/**
 * @param keys the current one first
 * @throws RangeError for none, more than `MASTER_KEYS_MAX`, one that is given twice, or one of less
 * than 16 bytes
 */
export function createMasterKeys(keys: readonly Uint8Array[]): MasterKeys {
  const all = keys.map((bytes) => {
    if (bytes.length < KEY_BYTES_MIN) throw new RangeError('a master key of less than 16 bytes');
    const id = hkdfSync('sha256', bytes, '', 'master key id', MASTER_KEY_ID_BYTES);
    return { id: Buffer.from(id), bytes };
  });
  const [current] = all;
  if (current === undefined) throw new RangeError('no master key');
  if (all.length > MASTER_KEYS_MAX)
    throw new RangeError(`more than ${MASTER_KEYS_MAX} master keys`);
  if (new Set(all.map(({ id }) => id.toString('hex'))).size < all.length)
    throw new RangeError('a master key is given twice');
  return { current, all };
}

/** The keys of MASTER_KEY, which white space separates. @throws RangeError */
export function parseMasterKeys(text: string): MasterKeys {
  return createMasterKeys(masterKeyTexts(text).map((key) => Buffer.from(key)));
}

export function masterKeyTexts(text: string): string[] {
  return text.split(/\s+/).filter((key) => key !== '');
}

/** The key with the id; undefined: the service does not have it. */
export function findMasterKey({ all }: MasterKeys, id: Uint8Array): MasterKey | undefined {
  return all.find((key) => key.id.equals(id));
}
