import { globSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { choose, isNamed, provingTests } from '#test/support/gate/chosen-files.ts';

const backup = 'test/e2e/operations/backup.long.test.ts';
const verify = 'test/unit/archive/verify.long.test.ts';
const archive = 'test/e2e/operations/archive.long.test.ts';
const long = [archive, backup, verify];

describe('the long tests that a change runs before it lands', () => {
  it('are those that prove what it touches', () => {
    expect(choose(['src/features/backup/manifest.ts'], long, {})).toEqual([backup]);
    expect(choose(['src/roles/api/routes.ts', 'src/features/backup/README.md'], long, {})).toEqual(
      [],
    );
  });

  it('begin with those that it edits', () => {
    const changed = ['src/features/archive/verify.ts', backup];
    expect(choose(changed, long, {})).toEqual([backup, verify, archive]);
  });

  it('take three minutes at most: one that does not fit waits for the night', () => {
    const durations = { [verify]: 100, [archive]: 90, [backup]: 80 };
    expect(
      choose(['src/features/archive/verify.ts', 'src/features/backup/a.ts'], long, durations),
    ).toEqual([backup, verify]);
  });

  it('are none that install packages of others, though it edits them', () => {
    const installs = 'test/e2e/clients/webdriver.long.test.ts';
    expect(choose([installs], [installs], {})).toEqual([]);
  });

  it('are not those of a folder whose name begins alike', () => {
    expect(choose(['src/backup-tool/a.ts'], long, {})).toEqual([]);
  });
});

test.each(provingTests)('%s, which the table names, is one long test', (name) => {
  const files = globSync('test/**/*.{long,soak}.test.ts');
  expect(files.filter((file) => isNamed(file, name))).toHaveLength(1);
});
