import { afterAll, beforeAll, expect, it } from 'vitest';
import { CorruptSegment, indexName } from '#src/features/archive/manifest.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** A file of the archive that is not what was sealed: what callers get, and what they do not. */

const damage = () => new CorruptSegment(3, null, 'the index was altered', { file: indexName(3) });
let app: Awaited<ReturnType<typeof startApp>>;

beforeAll(async () => {
  app = await startApp(undefined, {}, (eventStore) => ({
    ...eventStore,
    async readLast(aggregate, options) {
      if ('id' in aggregate && aggregate.id === 'ses_archived') throw damage();
      return eventStore.readLast(aggregate, options);
    },
  }));
});
afterAll(() => app?.[Symbol.asyncDispose]());

it('what it holds is refused with the name of the file, and nothing else is', async () => {
  const refused = await app.request('GET', '/api/sessions/ses_archived');
  expect([refused.status, refused.body.error]).toEqual([503, 'UNAVAILABLE']);
  expect(refused.body.context).toEqual({ part: 'archive', file: '000003.index' });
  expect(refused.body.message).toContain('000003.index is missing or is not what was sealed');
  const unknown = await app.request('GET', '/api/sessions/ses_unknown');
  expect([unknown.status, unknown.body.error]).toEqual([404, 'SESSION_NOT_FOUND']);
});
