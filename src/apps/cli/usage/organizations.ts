import type { KnownCommand } from '../command.ts';

/** Organizations, their keys and credits. */
export const organizationCommands: readonly KnownCommand[] = [
  {
    name: 'orgs create',
    summary: 'Register an organization with its first credits',
    options: {
      name: { value: 'NAME', meaning: '1 to 128 characters' },
      tier: { value: 'TIER', meaning: 'free, pro, max' },
      credits: { value: 'N', meaning: 'initial balance; default: the credits of the tier' },
    },
    load: async () => (await import('../commands/organizations.ts')).createOrganization,
  },
  {
    name: 'orgs list',
    summary: 'List the organizations',
    options: {},
    load: async () => (await import('../commands/organizations.ts')).listOrganizations,
  },
  {
    name: 'keys issue',
    summary: 'Issue an API key; it is shown only once, the service keeps its hash',
    options: {
      org: { value: 'ID', meaning: 'the organization' },
      role: { value: 'ROLE', meaning: 'owner, admin, member, viewer' },
      user: { value: 'U', meaning: 'user that the key belongs to; 1 to 256 characters' },
    },
    load: async () => (await import('../commands/keys.ts')).issueKey,
  },
  {
    name: 'keys list',
    summary: "List an organization's live keys",
    options: { org: { value: 'ID', meaning: 'the organization' } },
    load: async () => (await import('../commands/keys.ts')).listKeys,
  },
  {
    name: 'keys revoke',
    summary: 'Revoke an API key',
    options: { key: { value: 'ID', meaning: "the key's id, as keys list shows it" } },
    load: async () => (await import('../commands/keys.ts')).revokeKey,
  },
  {
    name: 'credits grant',
    summary: 'Grant credits to an organization; one credit is one session-minute',
    options: {
      org: { value: 'ID', meaning: 'the organization' },
      amount: { value: 'N', meaning: 'number of credits to add' },
    },
    load: async () => (await import('../commands/credits.ts')).grantCredits,
  },
  {
    name: 'credits show',
    summary: "Show an organization's credits and slots",
    options: { org: { value: 'ID', meaning: 'the organization' } },
    load: async () => (await import('../commands/credits.ts')).showCredits,
  },
  {
    name: 'credits statement',
    summary:
      'Show what credits of an organization paid for, beside its sessions; exit 1 if they differ',
    options: {
      org: { value: 'ID', meaning: 'the organization' },
      from: {
        value: 'TIME',
        meaning: 'begin, RFC 3339 or a date in UTC; default: the first event',
      },
      to: { value: 'TIME', meaning: 'end, not included; default: now' },
    },
    load: async () => (await import('../commands/credits-statement.ts')).showStatement,
  },
];
