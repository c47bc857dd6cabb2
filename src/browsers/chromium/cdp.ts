import { connectCdp, readMessage, type Cdp, type CdpMessage } from '#src/browsers/link/cdp.ts';
import type { CdpEvent } from '#src/browsers/link/cdp.ts';
import type { RunningBrowser } from '../browsers.ts';

/** The largest is a picture of a page of 3840 x 7680 pixels, in base64. */
const MESSAGE_BYTES_MAX = 32 * 1024 ** 2;

/** The end of a message of a target, behind all that a page can choose: its CDP session. */
const LAST_SESSION = /"sessionId":"(\w{1,64})"\}$/;
const END_BYTES = 128;
const ANSWER = /^\{"id":(\d{1,9}),/;

/** The event in place of one that was too large to be read. */
export const TOO_LARGE = 'Connection.eventTooLarge';

/**
 * Connects to a browser; the connection ends when the signal aborts.
 * @param options `readBytesMax`: a larger message is not read: it fails the command that it
 * answers, or its target has the event `TOO_LARGE` instead; so does a message of too many values
 * @throws Error if it does not answer before that
 */
export function openCdp(
  address: RunningBrowser['cdp'],
  signal: AbortSignal,
  { readBytesMax = MESSAGE_BYTES_MAX } = {},
): Promise<Cdp> {
  const read = (data: Buffer) => readUpTo(readBytesMax, data);
  return connectCdp(address, { signal, bytesMax: MESSAGE_BYTES_MAX, read });
}

function readUpTo(bytesMax: number, data: Buffer): CdpMessage<CdpEvent> {
  try {
    return readMessage(data, bytesMax);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const [, id] = ANSWER.exec(data.subarray(0, END_BYTES).toString('latin1')) ?? [];
    return id === undefined ? { event: tooLarge(data) } : { id: Number(id), answer: error };
  }
}

function tooLarge(data: Buffer): CdpEvent {
  const [, sessionId] = LAST_SESSION.exec(data.subarray(-END_BYTES).toString('latin1')) ?? [];
  const event = { method: TOO_LARGE, params: { bytes: data.length } };
  return sessionId === undefined ? event : { ...event, sessionId };
}
