import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  timingSafeEqual,
} from 'node:crypto';
import { isId } from '#events/subjects.ts';

/** What a ticket opens: a session's DevTools socket or its screen. */
export type TicketKind = 'cdp' | 'vnc';

export type Ticket = { kind: TicketKind; organizationId: string; sessionId: string };

export type Tickets = {
  /**
   * The session's ticket of this kind, always the same one. @throws RangeError if an id is invalid.
   */
  issue(kind: TicketKind, organizationId: string, sessionId: string): string;
  /** Decrypts a ticket; null: not issued with this key. */
  open(ticket: string): Ticket | null;
};

const TAG_BYTES = 16;
/** Tag, kind and two ids of at most 64 characters with a dot between: 146 bytes. */
const TICKET_CHARS_MAX = 195;
const PLAIN = /^([cv])([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{1,64})$/;

/**
 * Tickets are the only credential of a socket: self-contained, so that every gateway process opens
 * them without a lookup, and deterministic, so that a session's URL never changes.
 * Synthetic-nonce encryption (SIV): the HMAC of the plain text is both the nonce of AES-256-CTR and
 * the authentication tag. Equal tickets mean equal sessions; a ticket reveals nothing else.
 * @throws RangeError if the master key is shorter than 16 bytes.
 */
export function createTickets(masterKey: Uint8Array): Tickets {
  const macKey = deriveKey(masterKey, 'gateway ticket: authentication');
  const cipherKey = deriveKey(masterKey, 'gateway ticket: encryption');

  function tagOf(plain: Uint8Array): Buffer {
    return createHmac('sha256', macKey).update(plain).digest().subarray(0, TAG_BYTES);
  }

  return {
    issue(kind, organizationId, sessionId) {
      if (!isId(organizationId) || !isId(sessionId)) throw new RangeError('not an id');
      const plain = Buffer.from(`${kind[0]}${organizationId}.${sessionId}`, 'latin1');
      const tag = tagOf(plain);
      const cipher = createCipheriv('aes-256-ctr', cipherKey, tag);
      return Buffer.concat([tag, cipher.update(plain), cipher.final()]).toString('base64url');
    },
    open(ticket) {
      if (ticket.length > TICKET_CHARS_MAX) return null;
      const bytes = Buffer.from(ticket, 'base64url');
      // Canonical base64url only: the decoder also accepts padding, other characters, spare bits.
      if (bytes.length <= TAG_BYTES || bytes.toString('base64url') !== ticket) return null;
      const tag = bytes.subarray(0, TAG_BYTES);
      const decipher = createDecipheriv('aes-256-ctr', cipherKey, tag);
      const plain = Buffer.concat([decipher.update(bytes.subarray(TAG_BYTES)), decipher.final()]);
      if (!timingSafeEqual(tagOf(plain), tag)) return null;
      const [, kind, organizationId, sessionId] = PLAIN.exec(plain.toString('latin1')) ?? [];
      if (organizationId === undefined || sessionId === undefined) return null;
      return { kind: kind === 'c' ? 'cdp' : 'vnc', organizationId, sessionId };
    },
  };
}

function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, 32));
}
