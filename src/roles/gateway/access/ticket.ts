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

/** By what a ticket can be taken back before its session ends. */
export type IssuedTo = {
  /** The session's access epoch when the ticket was issued; a later rotation ends the ticket. */
  epoch: number;
  /** The API key that it was issued to, by `holderOf`; null: to no key (a JWT). */
  holder: string | null;
  /** The share or the hand-off whose address it is; null or absent: the session's own address. */
  grant?: Grant | null;
};

/** What a ticket is worth something for: it ends with its share or its hand-off. */
export type Grant = { kind: 'share' | 'handoff'; id: string };

export type Ticket = Required<IssuedTo> & {
  kind: TicketKind;
  organizationId: string;
  sessionId: string;
};

export type Tickets = {
  /**
   * The session's ticket of this kind for this holder; by default for none, at epoch 0. Always the
   * same one. @throws RangeError if an id, the epoch, the holder or the grant is invalid.
   */
  issue(kind: TicketKind, organizationId: string, sessionId: string, to?: IssuedTo): string;
  /** Decrypts a ticket; null: not issued with this key. */
  open(ticket: string): Ticket | null;
};

const TAG_BYTES = 16;
/** Tag, kind, two ids of at most 64 characters, epoch, holder, grant, four dots: 235 bytes. */
const TICKET_CHARS_MAX = 314;
/** The highest epoch that a ticket can have. */
export const EPOCH_MAX = 999_999_999;
/**
 * Epoch and holder are left out if the session was never rotated, the holder is no key and there is
 * no grant. Tickets of before they existed have this form, and those of before there were grants
 * have none.
 */
const SESSION = String.raw`([cv])([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{1,64})`;
const ISSUED_TO = String.raw`\.(0|[1-9]\d{0,8})\.([A-Za-z0-9_-]{12})?`;
const GRANT = String.raw`\.([sh])([A-Za-z0-9_-]{1,64})`;
const PLAIN = new RegExp(`^${SESSION}(?:${ISSUED_TO}(?:${GRANT})?)?$`);
const TO_ANYBODY: IssuedTo = { epoch: 0, holder: null };
/** Bytes of a key's hash that name it: 200 keys of an organization do not meet in 72 bits. */
const HOLDER_BYTES = 9;

/** The API key with this SHA-256 (hex) as tickets name it: 12 characters. */
export function holderOf(keyHash: string): string {
  return Buffer.from(keyHash, 'hex').subarray(0, HOLDER_BYTES).toString('base64url');
}

/**
 * Tickets are the only credential of a socket: self-contained, so that every gateway process opens
 * them without a lookup, and deterministic, so that a caller always gets the same URL.
 * Synthetic-nonce encryption (SIV): the HMAC of the plain text is both the nonce of AES-256-CTR and
 * the authentication tag. Equal tickets mean equal contents; a ticket reveals nothing else.
 * @throws RangeError if the master key is shorter than 16 bytes.
 */
export function createTickets(masterKey: Uint8Array): Tickets {
  const macKey = deriveKey(masterKey, 'gateway ticket: authentication');
  const cipherKey = deriveKey(masterKey, 'gateway ticket: encryption');

  function tagOf(plain: Uint8Array): Buffer {
    return createHmac('sha256', macKey).update(plain).digest().subarray(0, TAG_BYTES);
  }

  return {
    issue(kind, organizationId, sessionId, { epoch, holder, grant = null } = TO_ANYBODY) {
      const ticket = { kind, organizationId, sessionId, epoch, holder, grant };
      const plain = Buffer.from(plainOf(ticket), 'latin1');
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
      return parse(plain.toString('latin1'));
    },
  };
}

function plainOf({ kind, organizationId, sessionId, epoch, holder, grant }: Ticket): string {
  if (!isId(organizationId) || !isId(sessionId)) throw new RangeError('not an id');
  const session = `${kind[0]}${organizationId}.${sessionId}`;
  const isPlain = epoch === 0 && holder === null && grant === null;
  const to = isPlain ? '' : `.${epoch}.${holder ?? ''}`;
  const plain = `${session}${to}${grant === null ? '' : `.${grant.kind[0]}${grant.id}`}`;
  if (holder === '' || grant?.id === '' || !PLAIN.test(plain))
    throw new RangeError('not an epoch, not a holder, or not a grant');
  return plain;
}

function parse(plain: string): Ticket | null {
  const [, kind, organizationId, sessionId, epoch = '0', holder = null, of, id] =
    PLAIN.exec(plain) ?? [];
  if (organizationId === undefined || sessionId === undefined) return null;
  return {
    kind: kind === 'c' ? 'cdp' : 'vnc',
    organizationId,
    sessionId,
    epoch: Number(epoch),
    holder,
    grant: id === undefined ? null : { kind: of === 's' ? 'share' : 'handoff', id },
  };
}

function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, 32));
}
