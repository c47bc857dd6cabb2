import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { MasterKeys } from '#src/kernel/master-keys.ts';

/**
 * The passwords of sessions' proxies: events hold them encrypted, and only the proxy of a session's
 * server decrypts its one.
 */
export type ProxyPasswords = {
  /** Encrypts the password for one session. */
  seal(password: string, sessionId: string): string;
  /** @throws Error if it was not sealed for the session with one of these keys */
  open(sealed: string, sessionId: string): string;
  /** The same text for the same password, and no way back to it: for comparing requests. */
  markOf(password: string): string;
};

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

export function createProxyPasswords({ current, all }: MasterKeys): ProxyPasswords {
  const [key, macKey] = [derive(current.bytes, 'password'), derive(current.bytes, 'comparison')];
  return {
    seal(password, sessionId) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(sessionId));
      const text = [cipher.update(password, 'utf8'), cipher.final()];
      return Buffer.concat([nonce, ...text, cipher.getAuthTag()]).toString('base64url');
    },
    open(sealed, sessionId) {
      const bytes = Buffer.from(sealed, 'base64url');
      let refusal: unknown;
      for (const { bytes: master } of all)
        try {
          return opened(bytes, derive(master, 'password'), sessionId);
        } catch (error) {
          refusal = error;
        }
      throw refusal;
    },
    markOf: (password) => createHmac('sha256', macKey).update(password).digest('base64url'),
  };
}

function derive(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `egress proxy: ${purpose}`, 32));
}

function opened(sealed: Buffer, key: Buffer, sessionId: string): string {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(sessionId))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  const text = sealed.subarray(NONCE_BYTES, -TAG_BYTES);
  return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
}
