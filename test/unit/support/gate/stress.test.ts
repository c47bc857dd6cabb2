import { describe, expect, it } from 'vitest';
import { failed, file, ran } from '#test/support/gate/ran.fixture.ts';
import { stressFailures, stressOf } from '#test/support/gate/stress.ts';
import type { FileOutcome } from '#test/support/gate/outcomes.ts';

const taking = (seconds: number, path: string) => file(path, { from: 0, to: seconds * 1000 });
const named = (name: string) => `test/e2e/${name}.real.test.ts`;
const [A, B, C] = [named('a'), named('b'), named('c')] as const;

function stressed(files: FileOutcome[], changed: string[]) {
  return stressOf({ files, broken: [], summary: [] }, changed);
}

describe('the stress of a change', () => {
  it('is of the files of npm run test:real that it edits, if they passed', () => {
    const other = 'test/e2e/d.test.ts';
    const files = [file(A), failed(B), file(C), file(other)];
    expect(stressed(files, [other, A, B, named('gone')])).toEqual({
      files: [A],
      leftOut: [],
      alone: 10,
      loaded: 3,
    });
  });

  it('has fewer rounds where ten take more than a minute and a half', () => {
    expect(stressed([taking(4, A)], [A])).toMatchObject({ alone: 6, loaded: 2 });
    expect(stressed([taking(12, A)], [A])).toMatchObject({ alone: 3, loaded: 1 });
  });

  it('leaves out what does not fit, and what is beyond the ten that were edited last', () => {
    const files = [taking(8, A), taking(8, B), taking(3, C)];
    expect(stressed(files, [A, B, C])).toMatchObject({ files: [A, C], leftOut: [B] });
    const many = Array.from({ length: 11 }, (_, index) => named(`f${index}`));
    const all = stressed(
      many.map((path) => taking(0.1, path)),
      many,
    );
    expect(all.leftOut).toEqual([named('f10')]);
  });

  it('fails where a file fails once, does not run each time, or breaks the run', () => {
    const planned = { files: [A], alone: 2, loaded: 1, leftOut: [] };
    expect(stressFailures(planned, [ran([file(A), file(A)]), ran([file(A)])])).toEqual([]);
    expect(stressFailures(planned, [ran([file(A), file(A)]), ran([failed(A)])])).toEqual([
      `${A} > group > 1: expected 1 to be 2 (1 of 3 times)`,
    ]);
    expect(stressFailures(planned, [ran([file(A), file(A)])])).toEqual([`${A}: ran 2 of 3 times`]);
    const crashed = ran([file(A)], { crashes: ['exit 1'] });
    expect(stressFailures(planned, [ran([file(A), file(A)]), crashed])).toEqual([
      'a service crashed: exit 1',
    ]);
  });
});
