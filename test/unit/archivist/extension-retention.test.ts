import { expect, test } from 'vitest';
import { extensionRetention } from '#src/features/extensions/retention.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';

const HOUR = 3_600_000;
const sha256 = 'ab'.repeat(32);
const extensionId = `ext_${'ab'.repeat(16)}`;
const extension = {
  ...{ extensionId, sha256, name: 'Marker', version: '1.2', bytes: 480 },
  ...{ uploadedAt: '2026-11-20T09:30:00.000Z', by: 'ada' },
};

test('a zip goes an hour after its organization has removed it', async () => {
  let now = 10 * HOUR;
  const context = createCommandContext(createMemoryEventStore(), () => now);
  const organizationId = 'acme';
  const handle = (command: OrganizationCommand) =>
    handleCommand<'organization'>(
      context,
      { kind: 'organization', organizationId },
      (state) => decideOrganization(command, state),
      newMetadata('test'),
    );
  const { judge } = extensionRetention(context.eventStore, context.now);
  const verdict = (newestAt: number) => {
    const ids = { kind: 'extensions', organizationId, id: extensionId };
    return judge({ ...ids, objects: 1, bytes: 480, newestAt });
  };
  // Stored before the organization has it: an upload may be under way.
  expect(await verdict(9.5 * HOUR)).toBe('keep');
  // Nothing says that it was removed: the event store may be an older one.
  expect(await verdict(8.5 * HOUR)).toBe('unknown');
  await handle({ type: 'RegisterOrganization', name: 'Acme', tier: 'free' });
  await handle({ type: 'AddExtension', extension });
  expect(await verdict(1 * HOUR)).toBe('keep');
  await handle({ type: 'RemoveExtension', extensionId, by: 'ada' });
  // However long ago it was uploaded: a session that named it may wait for its browser.
  expect(await verdict(1 * HOUR)).toBe('keep');
  now += 0.9 * HOUR;
  expect(await verdict(1 * HOUR)).toBe('keep');
  now += 0.1 * HOUR;
  expect(await verdict(1 * HOUR)).toBe('expired');
  // Stored after the removal: an event store of later has it again, and this one is older.
  expect(await verdict(10 * HOUR - 1)).toBe('expired');
  now += HOUR;
  expect(await verdict(10 * HOUR + 1)).toBe('unknown');
  await handle({ type: 'AddExtension', extension });
  expect(await verdict(1 * HOUR)).toBe('keep');
});
