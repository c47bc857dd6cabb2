import { filtersFor } from '#events/subjects.ts';
import { isRejected, reject } from '../errors.ts';
import type { EventLog } from '../event-store/event-store.ts';
import { handle } from '../commands/handle-command.ts';
import { decideOrganization } from '../domain/organization/organization.ts';
import type { Command, CommandSession } from './command.ts';
import { Misuse } from './errors.ts';
import { asId } from './arguments.ts';
import { operatorCause } from './operator.ts';
import { readEvents } from './read-events.ts';

export const revokeKey: Command = {
  name: 'keys revoke',
  summary: 'Revoke an API key',
  options: { key: { value: 'ID', meaning: "the key's id, as keys list shows it" } },
  read(given) {
    const keyId = given.required('key', asKeyId);
    return async ({ desk, warn }) => {
      const organizationId = await organizationOf(desk.log, keyId, warn);
      if (organizationId === null)
        return reject('NOT_FOUND', { key_id: keyId }, { message: 'No such live key.' });
      const handled = await handle<'organization'>(
        desk,
        { kind: 'organization', organizationId },
        (state) => decideOrganization({ type: 'RevokeKey', keyId }, state),
        operatorCause(),
      );
      if (isRejected(handled)) return handled;
      return {
        json: { key_id: keyId, organization_id: organizationId },
        text: `key ${keyId} of ${organizationId} is revoked`,
      };
    };
  },
};

/** A key itself would pass for an id. */
function asKeyId(text: string): string {
  if (text.startsWith('bss_')) throw new Misuse('takes the id of a key (key_…), not the key');
  return asId(text);
}

/** Whose key it is: the log is read for its issue. null where no key has had this id. */
async function organizationOf(
  log: EventLog,
  keyId: string,
  warn: CommandSession['warn'],
): Promise<string | null> {
  const issues = filtersFor(null, 'organization.key-issued');
  for await (const event of readEvents(log, issues, warn))
    if (event.type === 'organization.key-issued' && event.data.keyId === keyId)
      return event.aggregate.organizationId;
  return null;
}
