/**
 * Root's rights are used only if the operator agrees: this says what would be installed, from where
 * and what for, with the command to do it by hand, and asks where there is a terminal.
 */
import { createInterface } from 'node:readline/promises';

export type Installation = {
  /** What it is for, and the Debian packages that bring it. */
  parts: readonly { purpose: string; packages: readonly string[] }[];
  /** The archives of packages. */
  from: string;
  /** The command a person would type for the same. */
  byHand: string;
};

/**
 * Prints what is to be installed as root, and asks if no answer was given before.
 * @param ending ends the question with its reason
 * @returns why it may not be installed; null: it may
 */
export async function refusalOf(
  { parts, from, byHand }: Installation,
  print: (line: string) => void,
  ending?: AbortSignal,
): Promise<string | null> {
  print(`Missing on this machine; apt-get installs it with root's rights, from ${from}:`);
  for (const { purpose, packages } of parts) print(`  ${packages.join(' ')}: ${purpose}`);
  print(`By hand: ${byHand}`);
  const given = answerGiven();
  if (given !== null && given !== 'yes') return `BSS_INSTALL is ${given}`;
  if (given === null && process.stdin.isTTY && process.stderr.isTTY)
    return (await asks('Install it? [Y/n] ', ending)) ? null : 'it was declined';
  if (isAgreed()) return null;
  return 'that needs root, and there is no terminal to ask on; BSS_INSTALL=yes agrees to it';
}

/**
 * Whether root's rights may be used without a question. Who runs this as root without a terminal
 * is a container, or what sets up a machine.
 */
export function isAgreed(): boolean {
  const given = answerGiven();
  return given === null ? process.getuid?.() === 0 : given === 'yes';
}

/** The operator's answer from the environment; null: none. A run of CI agrees. */
function answerGiven(): string | null {
  const { BSS_INSTALL: answer = '', CI: ci = '' } = process.env;
  if (answer !== '') return answer;
  return ['', '0', 'false'].includes(ci) ? null : 'yes';
}

/** Enter alone agrees; the end of the input does not. */
async function asks(question: string, ending?: AbortSignal): Promise<boolean> {
  // Not its own terminal mode: Ctrl-C stays a signal of this process.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('no')));
  try {
    const asked = lines.question(question, ending === undefined ? {} : { signal: ending });
    const answer = await Promise.race([asked, closed]);
    return ['', 'y', 'yes'].includes(answer.trim().toLowerCase());
  } catch (error) {
    throw ending?.aborted ? ending.reason : error;
  } finally {
    lines.close();
  }
}
