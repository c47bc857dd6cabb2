/** How much of a program's stderr is kept. */
const TAIL_BYTES_MAX = 2048;
/** A longer line is cut, so that a program's output cannot use up the memory. */
const LINE_CHARS_MAX = 16 * 1024;
/**
 * Chromium prints this dozens of times on a host without D-Bus; it would displace the useful lines.
 */
const NOISE = /:ERROR:dbus\//;

/** Calls back for each line of a text that arrives in chunks; a final `\n` flushes the rest. */
export function splitLines(onLine: (line: string) => void): (chunk: string) => void {
  let partial = '';
  return (chunk) => {
    const lines = (partial + chunk).split('\n');
    partial = (lines.pop() ?? '').slice(-LINE_CHARS_MAX);
    for (const line of lines) if (line !== '') onLine(line);
  };
}

/** The last lines of a text, at most 2 KiB. */
export function tailOf(chunks: Iterable<string>): string {
  const tail = keepTail();
  const lines = splitLines((line) => tail.add(line));
  for (const chunk of chunks) lines(chunk);
  lines('\n');
  return tail.text();
}

/** Keeps the last lines, at most 2 KiB. */
export function keepTail(): { add: (line: string) => void; text: () => string } {
  let kept: string[] = [];
  let bytes = 0;
  return {
    add: (line) => {
      if (NOISE.test(line)) return;
      const whole = line.slice(-TAIL_BYTES_MAX / 4);
      kept.push(whole);
      bytes += Buffer.byteLength(whole) + 1;
      while (bytes > TAIL_BYTES_MAX && kept.length > 1) {
        bytes -= Buffer.byteLength(kept.shift() ?? '') + 1;
      }
    },
    text: () => kept.join('\n'),
  };
}
