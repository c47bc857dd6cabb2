import type { Account } from './account.ts';

/**
 * Port: the accounts of organizations, which all processes share. Adapters:
 * ../jetstream/jetstream-accounts.ts, accounts.memory.ts.
 */
export type Accounts = {
  /** Null: there is none yet. @throws ObjectStoreUnavailable */
  read(organizationId: string): Promise<Account | null>;
  /**
   * Replaces an account by what `next` makes of it; null leaves it as it is. `next` is called again
   * where another process was first.
   * @returns what `next` has made of it
   * @throws ObjectStoreUnavailable
   */
  change(
    organizationId: string,
    next: (account: Account | null) => Account | null,
  ): Promise<Account | null>;
  /** The organizations that have one. @throws ObjectStoreUnavailable */
  organizations(): Promise<string[]>;
};
