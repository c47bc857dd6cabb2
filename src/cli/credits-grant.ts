import { isRejected } from '../errors.ts';
import { transact } from '../commands/handle-command.ts';
import { decideLedger, emptyLedger } from '../domain/organization/ledger.ts';
import type { Command } from './command.ts';
import { creditsMax, presentLedger } from './commands/credits.ts';
import { asId, asWhole } from './arguments.ts';
import { operatorCause } from './operator.ts';
import { noOrganization } from './organization.ts';

export const grantCredits: Command = {
  name: 'credits grant',
  summary: 'Give an organization credits; one is one session-minute',
  options: {
    org: { value: 'ID', meaning: 'the organization' },
    amount: { value: 'N', meaning: 'how many are added' },
  },
  read(given) {
    const organizationId = given.required('org', asId);
    const credits = given.required('amount', asWhole(1, creditsMax));
    return async ({ desk }) => {
      const ledger = { kind: 'ledger', organizationId } as const;
      const handled = await transact<'ledger'>(desk, ledger, operatorCause(), async ({ read }) => {
        const organization = { kind: 'organization', organizationId } as const;
        const { state: owner } = await read<'organization'>(organization);
        if (owner === null) return noOrganization(organizationId);
        const { state } = await read<'ledger'>(ledger);
        const events = decideLedger({ type: 'GrantCredits', credits }, state ?? emptyLedger);
        return isRejected(events) ? events : [{ aggregate: ledger, events }];
      });
      return isRejected(handled) ? handled : presentLedger(organizationId, handled.state);
    };
  },
};
