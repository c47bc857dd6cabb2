/**
 * Observes an RFB handshake (RFC 6143, 7.1 and 7.2) up to the result of VncAuth: without it a wrong
 * password would look like a closed screen. The bytes are neither changed nor delayed.
 */
export type RfbHandshake = {
  /** Call it with all bytes in order; bytes after the handshake are ignored. */
  observe(from: Side, chunk: Buffer): void;
  /** True once the screen has refused the viewer's password. */
  readonly isRefused: boolean;
};

type Side = 'screen' | 'viewer';
/** The next part of the handshake: its sender and its length in bytes. */
type Part = { from: Side; length: number };

/** The longest possible handshake: 255 security types and the parts around them. */
const HANDSHAKE_BYTES_MAX = 300;
const VNC_AUTH = 2;

export function observeHandshake(): RfbHandshake {
  const held = { screen: Buffer.alloc(0), viewer: Buffer.alloc(0) };
  const steps = handshake();
  let next = steps.next();

  return {
    observe(from, chunk) {
      if (next.done === true) return;
      // A side may send ahead of the other; bytes beyond the handshake are not kept.
      const room = HANDSHAKE_BYTES_MAX - held[from].length;
      held[from] = Buffer.concat([held[from], chunk.subarray(0, room)]);
      while (next.done !== true && held[next.value.from].length >= next.value.length) {
        const part: Part = next.value;
        const bytes = held[part.from].subarray(0, part.length);
        held[part.from] = held[part.from].subarray(part.length);
        next = steps.next(bytes);
      }
    },
    get isRefused() {
      return next.done === true && next.value === 'refused';
    },
  };
}

/** Yields the parts of the handshake one by one and receives the bytes of each. */
function* handshake(): Generator<Part, 'refused' | 'other', Buffer> {
  yield { from: 'screen', length: 12 };
  const version = yield { from: 'viewer', length: 12 };
  const security = yield* securityOf(Number(version.toString('latin1', 8, 11)));
  if (security !== VNC_AUTH) return 'other';
  yield { from: 'screen', length: 16 };
  const result = yield { from: 'screen', length: 4 };
  return result.readUInt32BE() === 0 ? 'other' : 'refused';
}

/** The security type: before RFB 3.7 the screen chooses it, since then the viewer. */
function* securityOf(minorVersion: number): Generator<Part, number, Buffer> {
  if (minorVersion < 7) return (yield { from: 'screen', length: 4 }).readUInt32BE();
  const [offered = 0] = yield { from: 'screen', length: 1 };
  if (offered === 0) return 0;
  yield { from: 'screen', length: offered };
  return (yield { from: 'viewer', length: 1 }).readUInt8();
}
