import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { changedFiles, commitsSince, lastCommit, uncommitted } from '#test/support/gate/change.ts';
import { scratchDir } from '#test/support/scratch.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** A folder under git with a first commit of an hour-old time; each commit is a minute later. */
async function repository() {
  const folder = await scratchDir();
  let minute = 0;
  const git = (...args: string[]) => {
    const date = new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
    const who = [
      '-c',
      'user.name=a',
      '-c',
      'user.email=a@example.com',
      '-c',
      'init.defaultBranch=b',
    ];
    return execFileSync('git', [...who, ...args], {
      cwd: folder.path,
      env: { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date },
      encoding: 'utf8',
    }).trim();
  };
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  };
  const commit = () => {
    minute += 1;
    git('add', '-A');
    git('commit', '-q', '-m', 'change');
    return git('rev-parse', '--short', 'HEAD');
  };
  git('init', '-q');
  return {
    root: folder.path,
    git,
    write,
    commit,
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test('a change is what was added or edited since its base, newest first, and what is not committed', async () => {
  await using repo = await repository();
  for (const name of ['old', 'edited', 'moved', 'gone']) repo.write(`${name}.ts`, `// ${name}\n`);
  const base = repo.commit();
  repo.write('first.ts', '1');
  repo.commit();
  repo.write('edited.ts', '2');
  renameSync(join(repo.root, 'moved.ts'), join(repo.root, 'elsewhere.ts'));
  repo.git('rm', '-q', 'gone.ts');
  const last = repo.commit();
  repo.write('old.ts', '3');
  repo.write('new/file.ts', '4');
  vi.stubEnv('CHANGE_BASE', base);
  expect(changedFiles(repo.root)).toEqual(['new/file.ts', 'old.ts', 'edited.ts', 'first.ts']);
  expect(lastCommit(repo.root)).toBe(last);
  expect(uncommitted(repo.root, ['old.ts'])).toContain('+3');
});

test('a file that names the new places of others, and nothing else, is not edited', async () => {
  await using repo = await repository();
  const body = Array.from({ length: 20 }, (_, line) => `run(parse, ${line});\n`).join('');
  const text = (imports: string, place: string) =>
    [imports, `/** As in ${place}. */`, body].join('\n');
  const before = text(`import { parse, run } from '../tools/parse.ts';`, 'src/tools/parse.ts');
  for (const name of ['src/a.ts', 'src/b.ts', 'src/c.ts', 'src/d.md']) repo.write(name, before);
  const base = repo.commit();
  const place = 'src/kernel/much-longer/tools/parse.ts';
  const after = text(`import {\n  parse,\n  run,\n} from '#${place}';`, place);
  repo.write('src/a.ts', after);
  repo.git('rm', '-q', 'src/b.ts');
  repo.write('src/kernel/b.ts', after);
  repo.write('src/c.ts', after.replace('run(parse, 7)', 'run(parse, 8)'));
  repo.write('src/d.md', after);
  repo.commit();
  vi.stubEnv('CHANGE_BASE', base);
  expect(changedFiles(repo.root)).toEqual(['src/c.ts', 'src/d.md']);
});

test('commits since a time are counted', async () => {
  await using repo = await repository();
  for (const text of ['1', '2', '3']) {
    repo.write('a', text);
    repo.commit();
  }
  expect(commitsSince(repo.root, '2026-01-01T00:01:30Z')).toBe(2);
});

test('without git there is no change', async () => {
  await using folder = await scratchDir();
  vi.stubEnv('CHANGE_BASE', '');
  vi.stubEnv('GIT_CEILING_DIRECTORIES', dirname(folder.path));
  expect([changedFiles(folder.path), lastCommit(folder.path)]).toEqual([[], null]);
});
