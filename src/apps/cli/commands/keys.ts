import type { Role } from '#events/organization.ts';
import { filtersFor } from '#events/subjects.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { isRejection, reject } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { hashKey, newApiKey, newId } from '#src/kernel/ids.ts';
import { parseId, oneOf, textUpTo } from '../arguments.ts';
import type { Command, CommandSession } from '../command.ts';
import { UsageError } from '../errors.ts';
import { operatorMetadata } from '../operator.ts';
import { organizationCommand } from '../organization.ts';
import { formatTable } from '../output.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

const roles = ['owner', 'admin', 'member', 'viewer'] as const satisfies readonly Role[];

export const issueKey: Command = {
  read(options) {
    const organizationId = options.required('org', parseId);
    const role = options.required('role', oneOf(roles));
    const userId = options.required('user', textUpTo(256));
    return async ({ context }) => {
      const apiKey = newApiKey(organizationId);
      const issuedAt = new Date(context.now()).toISOString();
      const key = { keyId: newId('key'), hash: hashKey(apiKey), role, userId, issuedAt };
      const handled = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (state) => decideOrganization({ type: 'IssueKey', key }, state),
        operatorMetadata(),
      );
      if (isRejection(handled)) return handled;
      return {
        json: { key_id: key.keyId, api_key: apiKey },
        text: `key ${key.keyId} (${role}, ${userId}); it will not be shown again:\n${apiKey}`,
      };
    };
  },
};

export const listKeys = organizationCommand(({ keys }) => {
  const json = keys.map(({ keyId, role, userId, issuedAt }) => ({
    key_id: keyId,
    role,
    user_id: userId,
    issued_at: issuedAt ?? null,
  }));
  const rows = json.map((key) => [key.key_id, key.role, key.user_id, key.issued_at ?? '–']);
  return { json, text: formatTable(['KEY', 'ROLE', 'USER', 'ISSUED'], rows).join('\n') };
});

export const revokeKey: Command = {
  read(options) {
    const keyId = options.required('key', parseKeyId);
    return async ({ context, warn }) => {
      const organizationId = await organizationOf(context.eventStore, keyId, warn);
      if (organizationId === null)
        return reject('NOT_FOUND', { key_id: keyId }, { message: 'No such live key.' });
      const handled = await handleCommand<'organization'>(
        context,
        { kind: 'organization', organizationId },
        (state) => decideOrganization({ type: 'RevokeKey', keyId }, state),
        operatorMetadata(),
      );
      if (isRejection(handled)) return handled;
      return {
        json: { key_id: keyId, organization_id: organizationId },
        text: `key ${keyId} of ${organizationId} is revoked`,
      };
    };
  },
};

/** Refuses a whole API key, which would otherwise pass for an id. */
function parseKeyId(text: string): string {
  if (text.startsWith('bss_')) throw new UsageError('takes the id of a key (key_…), not the key');
  return parseId(text);
}

/** The organization that the key was issued for, found by its event; null if there is none. */
async function organizationOf(
  eventStore: EventStore,
  keyId: string,
  warn: CommandSession['warn'],
): Promise<string | null> {
  const issues = filtersFor(null, 'organization.key-issued');
  for await (const event of readEvents(eventStore, issues, warn))
    if (event.type === 'organization.key-issued' && event.data.keyId === keyId)
      return event.aggregate.organizationId;
  return null;
}
