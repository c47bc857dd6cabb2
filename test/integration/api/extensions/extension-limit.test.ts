import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { organizationExtensionsMax } from '#events/organization/extension.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { startApp, ORGANIZATION } from '#test/support/service/api-in-memory.ts';
import { extensionZip, MANIFEST } from '#test/support/extensions/extension-zip.ts';

/** What an organization uploads beyond its limit of extensions. */

type App = Awaited<ReturnType<typeof startApp>>;
let app: App;
beforeAll(async () => void (app = await startApp()));
afterAll(() => app[Symbol.asyncDispose]());

const organization = { kind: 'organization', organizationId: ORGANIZATION } as const;
const decide = (command: Parameters<typeof decideOrganization>[0]) =>
  handleCommand<'organization'>(
    app.context,
    organization,
    (state) => decideOrganization(command, state),
    newMetadata('test'),
  );

async function fillUpTo(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const extensionId = `ext_${String(at).padStart(32, '0')}`;
    const facts = { name: 'One', version: '1', bytes: 1, sha256: '0'.repeat(64) };
    const extension = { extensionId, ...facts, uploadedAt: '2026-11-20T09:00:00.000Z', by: 'ada' };
    await decide({ type: 'AddExtension', extension });
  }
}
async function upload(name: string) {
  const zip = await extensionZip({ ...MANIFEST, name });
  return app.request('POST', '/api/extensions', zip, { 'content-type': 'application/zip' });
}
const stored = () => Array.fromAsync(app.objects.list('extensions/'));

test('of two uploads at the limit one is kept, and of the other nothing', async () => {
  await fillUpTo(organizationExtensionsMax - 1);
  const answers = await Promise.all(['a', 'b'].map(upload));
  const statuses = answers.map(({ status }) => status).toSorted();
  expect(statuses).toEqual([201, 429]);
  const { id } = answers.find(({ status }) => status === 201)?.body ?? {};
  expect((await stored()).map(({ key }) => key)).toEqual([`extensions/${ORGANIZATION}/${id}`]);
});

test('beyond the limit nothing is stored, and what is there may be uploaded again', async () => {
  const put = vi.spyOn(app.objects, 'put');
  const { status, body } = await upload('c');
  expect([status, body.error]).toEqual([429, 'EXTENSION_LIMIT_EXCEEDED']);
  expect(put).not.toHaveBeenCalled();
  const kept = (await stored()).length;
  const [a, b] = [await upload('a'), await upload('b')];
  expect([a.status, b.status].toSorted()).toEqual([200, 429]);
  expect(await stored()).toHaveLength(kept);
});
