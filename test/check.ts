/**
 * `npm run check`: what can be checked of the code in a minute. Runs every check even if one fails,
 * prints a line each with the output of those that failed, then `N passed, N failed`. Exits with 1
 * if any failed. With `--without-tests` no test runs: `.ci/run` runs all of them anyway.
 */
import { spawnSync } from 'node:child_process';

const FAST_TIERS = [
  'test/structure.test.ts',
  'test/tidy.test.ts',
  'test/documents.test.ts',
  'test/unit/domain',
  'test/unit/events',
];

const checks: [name: string, command: string, ...args: string[]][] = [
  ['format', 'oxfmt', '--check', '.'],
  ['lint', 'oxlint', '--type-aware'],
  ['types', 'tsc', '-p', '.'],
  ['types of the dashboard', 'tsc', '-p', 'src/apps/dashboard'],
  ['dead code', 'knip'],
];
if (!process.argv.includes('--without-tests'))
  checks.push([
    'layers and fast tests',
    'vitest',
    'run',
    '--config',
    'test/vitest.config.ts',
    ...FAST_TIERS,
  ]);

let failed = 0;
for (const [name, command, ...args] of checks) {
  const begunAt = performance.now();
  const { status, stdout, stderr, error } = spawnSync(`node_modules/.bin/${command}`, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const seconds = ((performance.now() - begunAt) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)\n`);
  if (status === 0) continue;
  failed += 1;
  process.stdout.write(`${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}\n`);
}
process.stdout.write(`${checks.length - failed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
