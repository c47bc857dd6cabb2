import { hkdfSync } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** VncAuth reads at most 8 characters: 47 bits, in addition to the ticket. */
const LENGTH = 8;
/** Bytes of 248 (4 × 62) and more are skipped, so that every character is equally likely. */
const UNBIASED = 256 - (256 % ALPHABET.length);

/**
 * The RFB password of a workload: derived from the master key at every use, never stored.
 * @throws RangeError if the master key is shorter than 16 bytes.
 */
export function createVncSecret(masterKey: Uint8Array): (workloadId: string) => string {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  return (workloadId) => {
    let secret = '';
    for (let round = 0; secret.length < LENGTH; round += 1) {
      const bytes = hkdfSync('sha256', masterKey, workloadId, `vnc password: ${round}`, 32);
      for (const byte of new Uint8Array(bytes)) {
        if (byte < UNBIASED && secret.length < LENGTH) secret += ALPHABET[byte % ALPHABET.length];
      }
    }
    return secret;
  };
}
