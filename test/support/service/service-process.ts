import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '#test/support/servers/ports.ts';
import { MAIN } from './program.ts';

/** The ready line of its log, or that of the terminal if the log level is higher. */
const READY = /"msg":"ready"|is ready: /;
const CLOSED_WITHIN_MS = 1_000;
/** Characters of what a service has printed last. */
const TAIL = 2_000;

export type Signal = 'SIGTERM' | 'SIGKILL';

/** A process of the service. */
export type ServiceProcess = {
  pid: number;
  /** All that it has printed. */
  output(): string;
  /** Calls the listener with all output for each piece of it, as soon as it arrives. */
  onOutput(listener: (output: string) => void): void;
  /** Resolves once its output has the ready line. @throws with its output if it ends before */
  ready: Promise<void>;
  /** Resolves with its exit code (null: a signal) once it and its output have ended. */
  ended: Promise<number | null>;
  /** Sends the signal, SIGTERM by default, unless it has ended, and resolves as `ended` does. */
  end(signal?: Signal): Promise<number | null>;
  wasKilled(): boolean;
};

export type Launch = {
  env: Record<string, string>;
  /** `src/main.ts` of another release; default: this one's program. */
  main?: string | undefined;
  args?: readonly string[] | undefined;
  /** A start or an end with an error is what the test is about, not a crash. */
  mayFail?: boolean | undefined;
};

/** Variables of a service with free ports and simulated browsers; `env` goes before them. */
export async function settingsOf(
  dataDir: string,
  env: Record<string, string>,
): Promise<Record<string, string>> {
  const [port, gatewayPort, tlsPort] = await freePorts(3);
  return {
    PORT: `${port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    GATEWAY_TLS_PORT: `${tlsPort}`,
    DATA_DIR: dataDir,
    BROWSERS: 'simulated',
    SIMULATED_LAUNCH_MS: '20ms',
    ...env,
  };
}

/**
 * Gives a new data folder the gateway's certificate that all of a run share: to make one takes a
 * start 0.2 s of processor time.
 */
export function giveCertificate(dataDir: string): void {
  const made = process.env['TEST_CERTIFICATE'];
  if (made === undefined) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  for (const file of ['gateway-cert.pem', 'gateway-key.pem'])
    if (!existsSync(join(dataDir, file))) copyFileSync(join(made, file), join(dataDir, file));
}

export const isReady = (output: string): boolean => READY.test(output);

/** Starts a process of the service. An end with an error that no test asked for is a crash. */
export function launch({ env, main = MAIN, args = [], mayFail = false }: Launch): ServiceProcess {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  let isKilled = false;
  const listeners: ((output: string) => void)[] = [];
  const ready = Promise.withResolvers<void>();
  // Not everybody waits for it.
  ready.promise.catch(() => undefined);
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      for (const listener of listeners) listener(printed);
      if (isReady(printed)) ready.resolve();
    });
  const closed = once(child, 'close');
  const ended = once(child, 'exit').then(async ([code, signal]) => {
    // What a killed service has started may hold its output open.
    await Promise.race([closed, delay(CLOSED_WITHIN_MS, null, { ref: false })]);
    ready.reject(new Error(`the service ended (${code ?? signal}):\n${printed}`));
    if (code !== 0 && !isKilled && !mayFail) reportCrash(code ?? signal, printed);
    return code as number | null;
  });

  async function end(signal: Signal = 'SIGTERM'): Promise<number | null> {
    if (child.exitCode === null && child.signalCode === null) {
      isKilled = signal === 'SIGKILL';
      child.kill(signal);
    }
    return ended;
  }
  return {
    pid: child.pid ?? 0,
    output: () => printed,
    onOutput: (listener) => void listeners.push(listener),
    ready: ready.promise,
    ended,
    end,
    wasKilled: () => isKilled,
  };
}

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
