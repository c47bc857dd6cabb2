import { appendFileSync } from 'node:fs';

/** Characters of what a service has printed last. */
const TAIL = 2_000;

/**
 * Reports a process of the service that ended as no test asked for: on stderr, and as a line in the
 * file that TEST_CRASHES names, which fails the run.
 */
export function reportCrash(end: number | string | null, output: string): void {
  process.stderr.write(`the service ended (${end}):\n${output.slice(-TAIL)}\n`);
  const file = process.env['TEST_CRASHES'];
  if (file === undefined) return;
  appendFileSync(file, `${JSON.stringify({ end, output: output.slice(-TAIL) })}\n`);
}
