import { expect, test } from 'vitest';
import { extensionRetention } from '#src/archivist/extension-retention.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/domain/organization/organization.ts';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';

const HOUR = 3_600_000;
const sha256 = 'ab'.repeat(32);
const extensionId = `ext_${'ab'.repeat(16)}`;
const extension = {
  ...{ extensionId, sha256, name: 'Marker', version: '1.2', bytes: 480 },
  ...{ uploadedAt: '2026-11-20T09:30:00.000Z', by: 'ada' },
};

test('a zip is kept as long as its organization has the extension, and an hour at least', async () => {
  const context = createCommandContext(createMemoryEventStore(), () => 10 * HOUR);
  const organizationId = 'acme';
  const handle = (command: OrganizationCommand) =>
    handleCommand<'organization'>(
      context,
      { kind: 'organization', organizationId },
      (state) => decideOrganization(command, state),
      newMetadata('test'),
    );
  const { isOver } = extensionRetention(context.eventStore, context.now);
  const over = (newestAt: number) => {
    const ids = { kind: 'extensions', organizationId, id: extensionId };
    return isOver({ ...ids, objects: 1, bytes: 480, newestAt });
  };
  // Stored before the organization has it: an upload may be under way.
  expect(await over(9.5 * HOUR)).toBe(false);
  expect(await over(8.5 * HOUR)).toBe(true);
  await handle({ type: 'RegisterOrganization', name: 'Acme', tier: 'free' });
  await handle({ type: 'AddExtension', extension });
  expect(await over(1 * HOUR)).toBe(false);
  await handle({ type: 'RemoveExtension', extensionId, by: 'ada' });
  expect(await over(9.5 * HOUR)).toBe(false);
  expect(await over(1 * HOUR)).toBe(true);
});
