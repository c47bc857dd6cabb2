import { expect, it } from 'vitest';
import { typesOf } from '#src/roles/api/event-stream/event-query.ts';

it('a stream can be asked for every type that organizations get, and for no internal one', () => {
  const types = typesOf(['session', 'ledger', 'organization']);
  expect(types).toContain('session.accessed');
  expect(types).toContain('ledger.slot-released');
  expect(types.filter((type) => type.endsWith('carried-forward'))).toEqual([]);
});
