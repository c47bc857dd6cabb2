/** Exit codes. */
export const DONE = 0;
export const REFUSED = 1;
export const NOT_UNDERSTOOD = 2;

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One line on stderr: for people, or with `--json` for programs. */
export function printError(error: string, message: string, isJson: boolean): void {
  // An API key may have been typed in the wrong place, and stderr often ends up in log files.
  const safe = message.replaceAll(/\bbss_[A-Za-z0-9_-]+/g, 'bss_…').trimEnd();
  const line = isJson ? JSON.stringify({ error, message: safe }) : `bss: ${safe}`;
  process.stderr.write(`${line}\n`);
}
