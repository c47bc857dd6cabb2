import { spawn } from 'node:child_process';

export type Outcome = {
  /** null: the command could not be run, was ended by a signal, or took too long. */
  code: number | null;
  /** The last 4 KiB of stdout and stderr. */
  output: string;
};

const OUTPUT_KEPT = 4096;

/** Runs a command without input; a failure is a value. Killed (SIGKILL) after `timeoutMs`. */
export async function runCommand(
  command: readonly string[],
  options: { timeoutMs: number; cwd?: string; env?: Record<string, string> },
): Promise<Outcome> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_KEPT);
    });
  }
  return await new Promise<Outcome>((resolve) => {
    child.once('error', (error) => resolve({ code: null, output: error.message }));
    child.once('close', (code) => resolve({ code, output: output.trim() }));
  });
}

/** The last lines of an output, for a message. */
export function lastLines(output: string, count = 3): string {
  return output.split('\n').slice(-count).join('\n');
}
