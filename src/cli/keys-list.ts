import { layOut } from './output.ts';
import { showOrganization } from './organization.ts';

export const listKeys = showOrganization(
  { name: 'keys list', summary: "List an organization's live keys" },
  ({ keys }) => {
    const json = keys.map(({ keyId, role, userId, issuedAt }) => ({
      key_id: keyId,
      role,
      user_id: userId,
      issued_at: issuedAt ?? null,
    }));
    const rows = json.map((key) => [key.key_id, key.role, key.user_id, key.issued_at ?? '–']);
    return { json, text: layOut(['KEY', 'ROLE', 'USER', 'ISSUED'], rows).join('\n') };
  },
);
