import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '#test/support/servers/ports.ts';
import { processesAt } from './processes.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/** Time limit of a start that cannot succeed: one that has not ended by then hangs. */
const ENDS_WITHIN_MS = 120_000;

/** A start with free ports, simulated browsers, and a folder for all its files. */
export type MainProcess = {
  folder: string;
  dataDir: string;
  env: Record<string, string>;
  pid: number;
  /** All its output. */
  said(): string;
  /** Calls the listener for each piece of output, as soon as it arrives. */
  onOutput(listener: (said: string) => void): void;
  /** Resolves with its exit code; kills it if it does not end. */
  ended: Promise<number | null>;
  end(signal?: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /** Command lines of its running processes. */
  processes(): string[];
} & AsyncDisposable;

/** Starts `node src/main.ts`; `env` overrides valid variables. */
export async function startMain(
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<MainProcess> {
  const folder = await mkdtemp('/tmp/bss-t-');
  await chmod(folder, 0o711);
  const dataDir = env['DATA_DIR'] ?? join(folder, 'data');
  const [port, gatewayPort, tlsPort] = await freePorts(3);
  const settings = {
    PORT: `${port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    GATEWAY_TLS_PORT: `${tlsPort}`,
    DATA_DIR: dataDir,
    TMPDIR: folder,
    BROWSERS: 'simulated',
    SIMULATED_LAUNCH_MS: '20ms',
    ...env,
  };
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const listeners: ((said: string) => void)[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      for (const listener of listeners) listener(said);
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);

  async function end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> {
    child.kill(signal);
    return ended;
  }
  return {
    folder,
    dataDir,
    env: settings,
    pid: child.pid ?? 0,
    said: () => said,
    onOutput: (listener) => void listeners.push(listener),
    ended,
    end,
    processes: () => processesAt(folder).map(({ command }) => command),
    async [Symbol.asyncDispose]() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A start that has to fail: its exit code, its output, and its remaining processes. */
export async function failToStart(
  env: Record<string, string>,
  args: readonly string[] = [],
  withinMs = ENDS_WITHIN_MS,
) {
  await using main = await startMain(env, args);
  const late = setTimeout(() => void main.end('SIGKILL'), withinMs);
  const code = await main.ended;
  clearTimeout(late);
  return { code, said: main.said(), left: main.processes(), dataDir: main.dataDir };
}
