import { describe, it } from 'vitest';
import { ARCHIVE, type ArchiveEvent, type ArchiveState } from '#events/archive/archive.ts';
import { decideSealed } from '#src/kernel/domain/archive/archive.ts';
import { specification } from '#test/support/given-when-then.ts';

const { given } = specification<'archive', ArchiveState>(ARCHIVE, decideSealed);

function headAt(segment: number, manifestSha256 = 'ab'.repeat(32)): ArchiveState {
  return { segment, lastSequence: segment * 100, manifestSha256, signer: 'a-key' };
}
function sealed(segment: number): ArchiveEvent {
  return { type: 'archive.sealed', data: headAt(segment) };
}

describe('the archive', () => {
  it('ends with the first segment, and then with each later one', () => {
    given().when(headAt(1)).then(sealed(1));
    given(sealed(1)).when(headAt(2)).then(sealed(2));
    given(sealed(1)).when(headAt(7)).then(sealed(7));
  });

  it('ends where it ended before, if that is recorded', () => {
    given(sealed(5)).when(headAt(5)).thenNothing();
    given(sealed(5))
      .when(headAt(5, 'cd'.repeat(32)))
      .thenNothing();
  });

  it('never ends earlier: another archivist has sealed more meanwhile', () => {
    given(sealed(5), sealed(6)).when(headAt(5)).thenNothing();
  });
});
