import { spawnSync } from 'node:child_process';

/**
 * How old a commit has to be, beside the newest one, not to be of the change, where nothing says
 * what the change is: commits that land together are some hours apart at most.
 */
const CHANGE_HOURS = 4;

/**
 * The files that this checkout's change adds or edits, as paths from the top of the project:
 * - since the commit that CHANGE_BASE names, or
 * - since the branch has left `origin/main`, or, where it is `origin/main` itself,
 * - since the newest commit that is four hours older than the last one;
 * and what is not committed. None where there is no git or no history.
 */
export function changedFiles(root: string): string[] {
  const base = baseOf(root);
  if (base === null) return [];
  const changed = git(root, 'diff', '--name-only', '--diff-filter=d', base);
  return (changed ?? '').split('\n').filter(Boolean);
}

function baseOf(root: string): string | null {
  const named = process.env['CHANGE_BASE'];
  if (named) return named;
  const left = git(root, 'merge-base', 'HEAD', 'origin/main');
  if (left !== null && left !== git(root, 'rev-parse', 'HEAD')) return left;
  const seconds = Number(git(root, 'log', '-1', '--format=%ct') ?? Number.NaN);
  if (Number.isNaN(seconds)) return null;
  const before = `--before=${seconds - CHANGE_HOURS * 3600}`;
  return git(root, 'rev-list', '-1', before, 'HEAD') || null;
}

/** What git prints; null: it failed, or there is none. */
function git(root: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
