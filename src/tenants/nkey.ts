/**
 * NATS keys: Ed25519, written in base32 with a prefix that says whose, and a checksum. Only what
 * the issuer of tenants' credentials needs: an account's key, made, read and signed with.
 */
import { createPrivateKey, createPublicKey, randomBytes, sign as signBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export type Issuer = {
  /** `A…`, as a server's configuration names it. */
  publicKey: string;
  sign(text: string): Buffer;
};

const SEED = 18 << 3;
const ACCOUNT = 0;
const KEY_BYTES = 32;
/** DER of an Ed25519 private key, less its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The seed of a new account key: `SA…`. */
export function newAccountSeed(): string {
  // The kind of key is told in the lowest 3 bits of the first byte and the upper 5 of the second.
  return encode(Buffer.from([SEED | (ACCOUNT >> 5), (ACCOUNT & 31) << 3]), randomBytes(KEY_BYTES));
}

/** The issuer that an account's seed makes; null where the text is none. */
export function readIssuer(seed: string): Issuer | null {
  const bytes = decode(seed);
  if (bytes === null || bytes.length !== 2 + KEY_BYTES) return null;
  if (bytes[0] !== SEED || bytes[1] !== ACCOUNT) return null;
  const der = Buffer.concat([PKCS8, bytes.subarray(2)]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return {
    publicKey: encode(Buffer.from([ACCOUNT]), publicBytes(key)),
    sign: (text) => signBytes(null, Buffer.from(text), key),
  };
}

function publicBytes(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES);
}

function encode(prefix: Buffer, key: Buffer): string {
  const bytes = Buffer.concat([prefix, key]);
  const checksum = Buffer.alloc(2);
  checksum.writeUInt16LE(crc16(bytes));
  return toBase32(Buffer.concat([bytes, checksum]));
}

/** The bytes less their checksum; null where it does not fit. */
function decode(text: string): Buffer | null {
  const bytes = fromBase32(text);
  if (bytes === null || bytes.length < 3) return null;
  const content = bytes.subarray(0, -2);
  return crc16(content) === bytes.readUInt16LE(content.length) ? content : null;
}

function toBase32(bytes: Buffer): string {
  let bits = '';
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => ALPHABET[Number.parseInt(group.padEnd(5, '0'), 2)]).join('');
}

function fromBase32(text: string): Buffer | null {
  if (!/^[A-Z2-7]+$/.test(text)) return null;
  let bits = '';
  for (const sign of text) bits += ALPHABET.indexOf(sign).toString(2).padStart(5, '0');
  const bytes = bits.match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}

/** CRC-16 as in XMODEM. */
function crc16(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}
