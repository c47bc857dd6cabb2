import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/**
 * The passwords of sessions' proxies: events hold them encrypted, and only the proxy of a session's
 * server decrypts its one.
 */
export type ProxyPasswords = {
  /** Encrypts the password for one session. */
  seal(password: string, sessionId: string): string;
  /** @throws Error if it was not sealed for the session with this key */
  open(sealed: string, sessionId: string): string;
  /** The same text for the same password, and no way back to it: for comparing requests. */
  markOf(password: string): string;
};

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/** @throws RangeError if the master key is shorter than 16 bytes */
export function createProxyPasswords(masterKey: Uint8Array): ProxyPasswords {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  const derive = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', masterKey, '', `egress proxy: ${purpose}`, 32));
  const [key, macKey] = [derive('password'), derive('comparison')];
  return {
    seal(password, sessionId) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(sessionId));
      const text = [cipher.update(password, 'utf8'), cipher.final()];
      return Buffer.concat([nonce, ...text, cipher.getAuthTag()]).toString('base64url');
    },
    open(sealed, sessionId) {
      const bytes = Buffer.from(sealed, 'base64url');
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(sessionId))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
    },
    markOf: (password) => createHmac('sha256', macKey).update(password).digest('base64url'),
  };
}
