import { createCipheriv } from 'node:crypto';

/**
 * The answer to a VncAuth challenge (RFC 6143, 7.2.2): single DES, where each byte of the key has
 * its bits reversed. OpenSSL 3 has no single DES any more; triple DES with the same key thrice is
 * the same.
 * @param password its first 8 characters count
 * @param challenge 16 bytes
 */
export function vncAuthResponse(password: string, challenge: Uint8Array): Buffer {
  const key = Buffer.alloc(8);
  key.write(password, 'latin1');
  const reversed = key.map(reverseBits);
  const cipher = createCipheriv(
    'des-ede3-ecb',
    Buffer.concat([reversed, reversed, reversed]),
    null,
  );
  cipher.setAutoPadding(false);
  return Buffer.concat([cipher.update(challenge), cipher.final()]);
}

function reverseBits(byte: number): number {
  let reversed = 0;
  for (let bit = 0; bit < 8; bit += 1) reversed |= ((byte >> bit) & 1) << (7 - bit);
  return reversed;
}
