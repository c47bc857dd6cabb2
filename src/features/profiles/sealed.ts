import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import {
  findMasterKey,
  MASTER_KEY_ID_BYTES,
  type MasterKey,
  type MasterKeys,
} from '#src/kernel/master-keys.ts';
import { ArchiveDamaged, readExactly } from './read-exactly.ts';

/**
 * A stream encrypted and authenticated with AES-256-GCM, in frames: its reader gets no byte that
 * was not verified, and learns whether it is complete. An object begins with its format, the id of
 * the master key and a salt. Its key is derived from the master key, the salt and the owner, so
 * that no two objects have the same one, and an object that was put in another's place cannot be
 * read.
 */

const FORMAT = Buffer.from('bssprf2\n');
const SALT_BYTES = 32;
const TAG_BYTES = 16;
const FRAME_BYTES = 256 * 1024;
/** Of a frame's length; set for the last frame. */
const LAST = 0x8000_0000;

/** What an object begins with, up to its salt: its format, and the id of its master key. */
export const SEAL_BYTES = FORMAT.length + MASTER_KEY_ID_BYTES;

/** @param owner whose it is: part of the key */
export async function* seal(
  { id, bytes }: MasterKey,
  owner: string,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  const key = keyOf(bytes, owner, salt);
  yield Buffer.concat([FORMAT, id, salt]);
  let count = 0;
  // The last frame is marked, so one is held back.
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    held = held.length === 0 ? Buffer.from(chunk) : Buffer.concat([held, chunk]);
    let from = 0;
    for (; held.length - from > FRAME_BYTES; from += FRAME_BYTES) {
      yield frame(key, count, held.subarray(from, from + FRAME_BYTES), false);
      count += 1;
    }
    held = held.subarray(from);
  }
  yield frame(key, count, held, true);
}

function frame(key: Buffer, count: number, plain: Buffer, isLast: boolean): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonceOf(count, isLast));
  const length = Buffer.alloc(4);
  length.writeUInt32BE((plain.length + TAG_BYTES + (isLast ? LAST : 0)) >>> 0);
  return Buffer.concat([length, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** The id of the master key that an object was sealed with. @throws ArchiveDamaged */
export function sealedWith(head: Buffer): Buffer {
  if (head.length < SEAL_BYTES || !head.subarray(0, FORMAT.length).equals(FORMAT))
    throw new ArchiveDamaged('it is of no format that this version reads');
  return head.subarray(FORMAT.length, SEAL_BYTES);
}

/**
 * @param onOlder called if it was sealed with another key than the current one
 * @throws ArchiveDamaged, also if it was sealed with a key that is none of these
 */
export async function* unseal(
  masterKeys: MasterKeys,
  owner: string,
  source: AsyncIterable<Uint8Array>,
  onOlder: () => void = () => undefined,
): AsyncGenerator<Buffer> {
  const reader = readExactly(source);
  const id = sealedWith(await reader.take(SEAL_BYTES));
  const masterKey = findMasterKey(masterKeys, id);
  if (masterKey === undefined)
    throw new ArchiveDamaged(
      `it was sealed with the master key ${id.toString('hex')}, which MASTER_KEY does not have`,
    );
  if (masterKey !== masterKeys.current) onOlder();
  const key = keyOf(masterKey.bytes, owner, await reader.take(SALT_BYTES));
  for (let count = 0; ; count += 1) {
    const length = (await reader.take(4)).readUInt32BE();
    const isLast = length >= LAST;
    const bytes = isLast ? length - LAST : length;
    if (bytes < TAG_BYTES || bytes > FRAME_BYTES + TAG_BYTES)
      throw new ArchiveDamaged('a frame has no valid length');
    yield plainOf(key, count, await reader.take(bytes), isLast);
    if (isLast) break;
  }
  if (!(await reader.isAtEnd())) throw new ArchiveDamaged('something follows the last frame');
}

function plainOf(key: Buffer, count: number, sealed: Buffer, isLast: boolean): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(count, isLast));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    const plain = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES));
    // It verifies the tag; the mode leaves no bytes for it.
    decipher.final();
    return plain;
  } catch (error) {
    throw new ArchiveDamaged('a frame was changed, or has another key', { cause: error });
  }
}

/** Unique for the key: the frame's number, and whether it is the last one. */
function nonceOf(count: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(isLast ? 1 : 0, 0);
  nonce.writeBigUInt64BE(BigInt(count), 4);
  return nonce;
}

function keyOf(masterKey: Uint8Array, owner: string, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, salt, `profile archive: ${owner}`, 32));
}
