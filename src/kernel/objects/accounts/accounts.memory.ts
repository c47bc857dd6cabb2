import type { Account } from './account.ts';
import type { Accounts } from './accounts.ts';

/** Keeps accounts in this process's memory, for tests. */
export function createMemoryAccounts(): Accounts {
  const accounts = new Map<string, Account>();
  return {
    read: async (organizationId) => accounts.get(organizationId) ?? null,
    async change(organizationId, next) {
      const changed = next(accounts.get(organizationId) ?? null);
      if (changed !== null) accounts.set(organizationId, changed);
      return changed;
    },
    organizations: async () => [...accounts.keys()],
  };
}
