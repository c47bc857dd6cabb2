import { spawnSync } from 'node:child_process';

/**
 * How old a commit has to be, beside the newest one, not to be of the change, where nothing says
 * what the change is: commits that land together are some hours apart at most.
 */
const CHANGE_HOURS = 4;
/** Of one command of git: a diff of all files has some 10 MB. */
const OUTPUT_MAX = 256 * 1024 ** 2;

/** What a compiler reads: elsewhere a path may be what matters. */
const CODE = ['*.ts', '*.tsx', '*.mjs'];

/**
 * The files that this checkout's change adds or edits, as paths from the top of the project, those
 * that were edited last first:
 * - since the commit that CHANGE_BASE names, or
 * - since the branch has left `origin/main`, or, where it is `origin/main` itself,
 * - since the newest commit that is four hours older than the last one;
 * and what is not committed. A file that has only moved, or that names new places of others, is not
 * edited. None where there is no git or no history.
 */
export function changedFiles(root: string): string[] {
  const base = baseOf(root);
  if (base === null) return [];
  const status = git(root, 'diff', '--name-status', '-M', '--diff-filter=d', base);
  const moved = namesNewPlaces(
    git(root, 'diff', '-M', '-U0', '--diff-filter=MR', base, '--', ...CODE),
  );
  const changed = new Set(edited(status).filter((file) => !moved.has(file)));
  const fresh = linesOf(git(root, 'ls-files', '--others', '--exclude-standard'));
  const newestFirst = [
    ...fresh,
    ...linesOf(git(root, 'diff', '--name-only', 'HEAD')),
    ...linesOf(git(root, 'log', '--name-only', '--format=', `${base}..HEAD`)),
  ];
  const ordered = newestFirst.filter((file) => fresh.includes(file) || changed.has(file));
  return [...new Set([...ordered, ...changed])];
}

/** Documents change no behaviour: `test/documents.test.ts` and the checks beside it hold them. */
export const isDocument = (path: string): boolean => path.endsWith('.md');

/** The last commit; null where there is no git. */
export function lastCommit(root: string): string | null {
  return git(root, 'rev-parse', '--short', 'HEAD');
}

/** How many commits there are since a time. */
export function commitsSince(root: string, time: string): number {
  return Number(git(root, 'rev-list', '--count', `--since=${time}`, 'HEAD') ?? 0);
}

/** What is not committed of these files, as `git apply` takes it. */
export function uncommitted(root: string, files: readonly string[]): string {
  return git(root, 'diff', 'HEAD', '--', ...files) ?? '';
}

/** Of the lines of `git diff --name-status`: `M<tab>path`, or `R096<tab>from<tab>to`. */
function edited(status: string | null): string[] {
  return linesOf(status)
    .map((line) => line.split('\t'))
    .filter(([how]) => how !== 'R100' && how !== 'C100')
    .map((fields) => fields.at(-1) ?? '');
}

/** Of the output of `git diff -U0`: the files in which nothing but paths of the project differs. */
function namesNewPlaces(diff: string | null): Set<string> {
  const files = (diff ?? '').split(/^diff --git .*\n/m).slice(1);
  return new Set(
    files.flatMap((text) => {
      const [, file] = /^\+\+\+ b\/(.+)$/m.exec(text) ?? [];
      const lines = text.slice(text.indexOf('\n@@')).split('\n');
      const side = (sign: string) =>
        lines.flatMap((line) => (line.startsWith(sign) ? [line.slice(1)] : [])).join('\n');
      const isSame = withoutPlaces(side('-')) === withoutPlaces(side('+'));
      return file !== undefined && isSame ? [file] : [];
    }),
  );
}

/** Code without paths of the project, and without what the formatter changes where they grow. */
const withoutPlaces = (code: string): string =>
  code.replaceAll(/(?:#?src|\.{1,2})\/[\w./-]+/g, '').replaceAll(/[\s,*]|\/\//g, '');

const linesOf = (text: string | null): string[] => (text ?? '').split('\n').filter(Boolean);

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
  const { status, stdout } = spawnSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: OUTPUT_MAX,
  });
  return status === 0 ? stdout.trim() : null;
}
