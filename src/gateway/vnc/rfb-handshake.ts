/**
 * Follows an RFB handshake (RFC 6143, 7.1 and 7.2) that passes by, up to the result of VncAuth:
 * without it a wrong password looks as if the screen had gone. Changes and holds back nothing.
 */
export type RfbHandshake = {
  /** To be told of all bytes in their order; after the handshake they are not looked at. */
  heard(from: Side, chunk: Buffer): void;
  /** The screen has refused the viewer's password. */
  readonly isRefused: boolean;
};

type Side = 'screen' | 'viewer';
/** What comes next in the handshake. */
type Part = { from: Side; length: number };

/** Its longest: 255 kinds of security, and what is around them. */
const HANDSHAKE_BYTES_MAX = 300;
const VNC_AUTH = 2;

export function followHandshake(): RfbHandshake {
  const held = { screen: Buffer.alloc(0), viewer: Buffer.alloc(0) };
  const steps = handshake();
  let next = steps.next();

  return {
    heard(from, chunk) {
      if (next.done === true) return;
      // A side may send ahead of the other; what is beyond the handshake is not kept.
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

/** Asks for the handshake's parts one by one; each is given to it as the answer to its `yield`. */
function* handshake(): Generator<Part, 'refused' | 'other', Buffer> {
  yield { from: 'screen', length: 12 };
  const version = yield { from: 'viewer', length: 12 };
  const security = yield* securityOf(Number(version.toString('latin1', 8, 11)));
  if (security !== VNC_AUTH) return 'other';
  yield { from: 'screen', length: 16 };
  const result = yield { from: 'screen', length: 4 };
  return result.readUInt32BE() === 0 ? 'other' : 'refused';
}

/** The kind of security that is used: before RFB 3.7 the screen says it, since then the viewer. */
function* securityOf(minorVersion: number): Generator<Part, number, Buffer> {
  if (minorVersion < 7) return (yield { from: 'screen', length: 4 }).readUInt32BE();
  const [offered = 0] = yield { from: 'screen', length: 1 };
  if (offered === 0) return 0;
  yield { from: 'screen', length: offered };
  return (yield { from: 'viewer', length: 1 }).readUInt8();
}
