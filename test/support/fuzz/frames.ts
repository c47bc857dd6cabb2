import type { Random } from './random.ts';
import { hostileValue } from './values.ts';

/** What a client may send after a handshake: frames of any kind, complete and broken ones. */
export function frames(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.int(6) }, () => frame(random)));
}

/** None of them ends the browser: what a client does to its own browser is not what is tried. */
const METHODS = [
  ...['Browser.getVersion', 'Target.getTargets', 'Target.setDiscoverTargets', 'Page.enable'],
  ...['Browser.setDownloadBehavior', 'Page.setDownloadBehavior', 'Target.setAutoAttach'],
  ...['session.status', 'session.new', 'browsingContext.getTree', 'script.evaluate', 'x'],
];
const CODES = [0x81, 0x82, 0x80, 0x01, 0x00, 0x89, 0x8a, 0x88, 0xc1, 0x83, 0x8f, 0x09];

function frame(random: Random): Buffer {
  const payload = payloadOf(random);
  const first = random.chance(0.8) ? random.pick(CODES) : random.int(256);
  const isMasked = random.chance(0.9);
  const mask = isMasked ? random.bytes(4) : Buffer.alloc(0);
  const length = random.chance(0.85) ? lengthOf(payload.length) : lie(random);
  length[0] = (length[0] ?? 0) | (isMasked ? 0x80 : 0);
  const masked = payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return Buffer.concat([Buffer.of(first), length, mask, masked]);
}

function payloadOf(random: Random): Buffer {
  const kind = random.int(6);
  if (kind <= 1)
    return Buffer.from(
      JSON.stringify({ id: random.int(9), method: random.pick(METHODS), params: {} }),
    );
  if (kind === 2) {
    const params = hostileValue(random);
    const message = { id: hostileValue(random), method: random.pick(METHODS), params };
    return Buffer.from(JSON.stringify(message));
  }
  if (kind === 3) return Buffer.from('RFB 003.008\n');
  // An update of a screen, keys, a pointer, a clipboard of four gigabytes, and what is none.
  if (kind === 4) return Buffer.from([random.int(8), ...random.bytes(random.int(24))]);
  return random.bytes(random.int(random.chance(0.05) ? 20_000 : 60));
}

function lengthOf(bytes: number): Buffer {
  if (bytes < 126) return Buffer.of(bytes);
  const long = Buffer.alloc(3);
  long[0] = 126;
  long.writeUInt16BE(bytes & 0xffff, 1);
  return long;
}

function lie(random: Random): Buffer {
  return random.pick([
    Buffer.of(126, 0, 1),
    Buffer.of(126, 255, 255),
    Buffer.of(127, 0, 0, 0, 1, 0, 0, 0, 0),
    Buffer.of(127, 255, 255, 255, 255, 255, 255, 255, 255),
    Buffer.of(random.int(126)),
  ]);
}
