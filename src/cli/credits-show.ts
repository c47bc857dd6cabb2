import { load } from '../event-store/load-state.ts';
import { emptyLedger } from '../domain/organization/ledger.ts';
import { presentLedger } from './commands/credits.ts';
import { showOrganization } from './organization.ts';

export const showCredits = showOrganization(
  { name: 'credits show', summary: "Show an organization's credits and slots" },
  async ({ id }, log) => {
    const ledger = { kind: 'ledger', organizationId: id } as const;
    const { state } = await load<'ledger'>(log, ledger, { fromLeader: true });
    return presentLedger(id, state ?? emptyLedger);
  },
);
