/**
 * `node src/start/embedded/launch.mjs run test/gate.ts <tier…> [arguments of vitest…]`: runs the
 * tests of the tiers, repeats what failed by chance as "When a test fails" in test/README.md
 * allows, and prints `N passed, N failed` last. `npm run test:real` and `.ci/run` are this program.
 */
import { fileURLToPath } from 'node:url';
import { changedFiles, commitsSince, lastCommit, uncommitted } from './support/gate/change.ts';
import { runGate } from './support/gate/run-gate.ts';
import { runVitest } from './support/gate/vitest-child.ts';
import { tierNames, type Tier } from './tiers.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const given = process.argv.slice(2);
const count = given.findIndex((word) => !tierNames.includes(word as Tier));
const tiers = given.slice(0, count === -1 ? given.length : count) as Tier[];
const args = given.slice(tiers.length);

const vitest = [process.execPath, 'src/start/embedded/launch.mjs', 'test'];
const isGreen = await runGate(
  {
    root,
    run: (more, env) =>
      // The launcher ends vitest when this process is gone.
      runVitest(vitest, more, { root, env: { ...env, BSS_LAUNCHED: '1' }, stdio: 'inherit' }),
    changed: changedFiles(root),
    commit: lastCommit(root),
    commitsSince: (date) => commitsSince(root, date),
    // CI's checkout is thrown away, its log is kept.
    toCommit: (files) => (process.env['CI'] === 'true' ? uncommitted(root, files) : ''),
    now: () => new Date(),
    print: (line) => void process.stdout.write(`${line}\n`),
  },
  tiers,
  args,
);
process.exitCode = isGreen ? 0 : 1;
