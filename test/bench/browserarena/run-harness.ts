/**
 * Runs BrowserArena's harness out of its checkout, in a process of its own: its clients and the
 * service do not delay each other. Argument: a `HarnessRun` as JSON.
 */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Programs } from '../lifecycle/bare-browser.ts';
import type { ArenaHarness } from './harness-types.ts';
import { bareProvider, serviceProvider } from './providers.ts';

export type HarnessRun = {
  /** Folder of the checkout. */
  checkout: string;
  provider: { kind: 'service'; url: string; apiKey: string } | ({ kind: 'bare' } & Programs);
  batches: number;
  concurrency: number;
  /** Of the page that is opened. */
  page: string;
  /** File of its records, JSON lines. */
  out: string;
};

const HARNESS = 'src/benchmarks/hello-browser/run.ts';

/**
 * The harness is TypeScript that is meant to be compiled: it imports `./x.js`, which is `./x.ts`.
 * Its Playwright is that of the checkout, if it is installed there, else the one of this project.
 */
function readTypeScriptOf(checkout: string): void {
  const inside = pathToFileURL(join(checkout, 'src')).href;
  registerHooks({
    resolve(specifier, context, next) {
      const isTheirs = context.parentURL?.startsWith(inside) === true;
      if (isTheirs && specifier.startsWith('.')) {
        const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
        if (existsSync(fileURLToPath(source))) return { url: source.href, shortCircuit: true };
      }
      try {
        return next(specifier, context);
      } catch (error) {
        if (!isTheirs) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

const run = JSON.parse(process.argv[2] ?? '') as HarnessRun;
readTypeScriptOf(run.checkout);
const module = pathToFileURL(join(run.checkout, HARNESS)).href;
const { runLoop } = (await import(module)) as ArenaHarness;
const bare = run.provider.kind === 'bare' ? bareProvider(programsOf(run.provider)) : null;
const provider = bare ?? serviceProvider(run.provider as { url: string; apiKey: string });
const { batches: runs, concurrency, page: url, out } = run;
await runLoop(provider, { runs, url, out, concurrency });
await bare?.removed();
// Playwright's connections of the harness are left open.
process.exit(0);

function programsOf({ chromium, xvnc }: Programs): Programs {
  return { chromium, xvnc };
}
