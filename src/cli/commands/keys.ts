import type { Role } from '#events/organization.ts';
import { isRejected } from '#src/errors.ts';
import { hashKey, newApiKey, newId } from '#src/ids.ts';
import { handle } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/domain/organization/organization.ts';
import type { Command } from '../command.ts';
import { asId, asOneOf, asText } from '../arguments.ts';
import { operatorCause } from '../operator.ts';

const roles = ['owner', 'admin', 'member', 'viewer'] as const satisfies readonly Role[];

export const issueKey: Command = {
  name: 'keys issue',
  summary: 'Issue an API key; it is shown this once, and only its hash is kept',
  options: {
    org: { value: 'ID', meaning: 'the organization' },
    role: { value: 'ROLE', meaning: roles.join(', ') },
    user: { value: 'U', meaning: 'whose key it is; 1 to 256 characters' },
  },
  read(given) {
    const organizationId = given.required('org', asId);
    const role = given.required('role', asOneOf(roles));
    const userId = given.required('user', asText(256));
    return async ({ desk }) => {
      const apiKey = newApiKey(organizationId);
      const issuedAt = new Date(desk.now()).toISOString();
      const key = { keyId: newId('key'), hash: hashKey(apiKey), role, userId, issuedAt };
      const handled = await handle<'organization'>(
        desk,
        { kind: 'organization', organizationId },
        (state) => decideOrganization({ type: 'IssueKey', key }, state),
        operatorCause(),
      );
      if (isRejected(handled)) return handled;
      return {
        json: { key_id: key.keyId, api_key: apiKey },
        text: `key ${key.keyId} (${role}, ${userId}); it will not be shown again:\n${apiKey}`,
      };
    };
  },
};
