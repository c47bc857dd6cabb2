import { expect, test } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { extensionZip } from '#test/support/extensions/extension-zip.ts';

test('extensions are uploaded, named by a session, and removed', async () => {
  await using app = await startApp();
  const client = createClient({ url: await app.listen(), apiKey: 'any', retriesMax: 0 });
  const { extensions, sessions } = client;
  const uploaded = await extensions.upload(new Uint8Array(await extensionZip()));
  expect(uploaded).toMatchObject({ name: 'Marker', version: '1.2' });
  expect(await extensions.list()).toEqual([uploaded]);
  expect(await extensions.get(uploaded.id)).toEqual(uploaded);
  const session = await sessions.create({ extensions: [uploaded.id] });
  expect(session.extensions).toEqual([uploaded.id]);
  await extensions.remove(uploaded.id);
  await expect(extensions.get(uploaded.id)).rejects.toMatchObject({ error: 'EXTENSION_NOT_FOUND' });
  const junk = new TextEncoder().encode('junk');
  await expect(extensions.upload(junk)).rejects.toMatchObject({ error: 'INVALID_EXTENSION' });
});
