import { createReadStream } from 'node:fs';

/** No record comes near it: NATS takes messages of a megabyte. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * The lines of a file as their bytes; `isEnded` is false for the rest behind the last line feed. A
 * line that is longer than any of ours is handed out in pieces.
 */
export async function* linesOf(path: string) {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      yield { text: Buffer.concat([...rest, chunk.subarray(from, at)]), isEnded: true };
      rest = [];
      restBytes = 0;
      from = at + 1;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > LINE_BYTES_MAX) {
      yield { text: Buffer.concat(rest), isEnded: false };
      rest = [];
      restBytes = 0;
    }
  }
  const text = Buffer.concat(rest);
  if (text.length > 0) yield { text, isEnded: false };
}
