import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MAIN_SOURCE } from './program.ts';
import { processesAt } from './processes.ts';
import { launch, settingsOf, type ServiceProcess } from './service-process.ts';

/** Time limit of a start that cannot succeed: one that has not ended by then hangs. */
const ENDS_WITHIN_MS = 120_000;

/** A start with free ports, simulated browsers, and a folder for all its files. */
export type MainProcess = ServiceProcess & {
  folder: string;
  dataDir: string;
  env: Record<string, string>;
  /** Command lines of its running processes. */
  processes(): string[];
} & AsyncDisposable;

/**
 * Starts the service's program, and does not wait until it is ready; `env` overrides valid
 * variables.
 */
export async function startMain(
  env: Record<string, string> = {},
  args: readonly string[] = [],
  mayFail = false,
): Promise<MainProcess> {
  const folder = await mkdtemp('/tmp/bss-t-');
  await chmod(folder, 0o711);
  const dataDir = env['DATA_DIR'] ?? join(folder, 'data');
  const settings = await settingsOf(dataDir, { TMPDIR: folder, ...env });
  const started = launch({ env: settings, main: MAIN_SOURCE, args, mayFail });
  return {
    ...started,
    folder,
    dataDir,
    env: settings,
    processes: () => processesAt(folder).map(({ command }) => command),
    async [Symbol.asyncDispose]() {
      await started.end();
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
  await using main = await startMain(env, args, true);
  const late = setTimeout(() => void main.end('SIGKILL'), withinMs);
  const code = await main.ended;
  clearTimeout(late);
  return { code, said: main.output(), left: main.processes(), dataDir: main.dataDir };
}
