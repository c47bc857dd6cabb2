import type { OrganizationState, Role, Tier } from '#events/organization.ts';
import type { LedgerState } from '#events/ledger.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { hashKey, newId } from '#src/kernel/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import {
  decideOrganization,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';
import { eventually, type Service } from './service.ts';
import type { ApiClient } from '#test/support/clients/api-client.ts';

/** A running service's event store from outside, as its operator's tools see it. */
export type ServiceLog = {
  eventStore: EventStore;
  ledger(organizationId: string): Promise<LedgerState | null>;
  /** Resolves once the session has ended; a stop is answered before. */
  ended(organizationId: string, id: string): Promise<void>;
  register(id: string, tier: Tier, credits: number): Promise<void>;
  grant(organizationId: string, credits: number): Promise<void>;
  /** A new key of the role, once the API accepts it. */
  issueKey(organizationId: string, role: Role, api: ApiClient): Promise<string>;
  revokeKey(organizationId: string, apiKey: string): Promise<void>;
} & AsyncDisposable;

export async function openLog(service: Pick<Service, 'runtime'>): Promise<ServiceLog> {
  const connection = await connectJetStream({ url: service.runtime.nats_url, name: 'test' });
  const eventStore = createJetStreamEventStore(connection);
  const context = createCommandContext(eventStore, Date.now);

  async function decide(
    organizationId: string,
    commandFor: (organization: OrganizationState | null) => OrganizationCommand,
  ): Promise<void> {
    const handled = await handleCommand<'organization'>(
      context,
      { kind: 'organization', organizationId },
      (organization) => decideOrganization(commandFor(organization), organization),
      newMetadata('test'),
    );
    if (isRejection(handled)) throw new Error(JSON.stringify(handled));
  }
  return {
    eventStore,
    ledger: async (organizationId) =>
      (await loadState<'ledger'>(eventStore, { kind: 'ledger', organizationId })).state,
    async ended(organizationId, id) {
      const session = { kind: 'session', organizationId, id } as const;
      await eventually(async () => {
        const { state } = await loadState<'session'>(eventStore, session);
        return state !== null && isFinal(state.status);
      }, `${id} has ended`);
    },
    async register(id, tier, credits) {
      const asked = { id, name: id, tier, credits };
      const registered = await registerOrganization(context, asked, newMetadata('test'));
      if (isRejection(registered)) throw new Error(JSON.stringify(registered));
    },
    async grant(organizationId, credits) {
      const ledger = { kind: 'ledger', organizationId } as const;
      const line = { type: 'ledger.credits-granted', data: { credits } } as const;
      await handleCommand<'ledger'>(context, ledger, () => [line], newMetadata('test'));
    },
    async issueKey(organizationId, role, api) {
      const apiKey = `bss_${organizationId}_${newId('secret')}`;
      const key = { keyId: newId('key'), hash: hashKey(apiKey), role, userId: `${role}-user` };
      await decide(organizationId, () => ({ type: 'IssueKey', key }));
      await eventually(
        async () => (await api.as(apiKey).get('/api/status')).status === 200,
        'the key is taken',
      );
      return apiKey;
    },
    async revokeKey(organizationId, apiKey) {
      const hash = hashKey(apiKey);
      await decide(organizationId, (organization) => {
        const keyId = organization?.keys.find((key) => key.hash === hash)?.keyId ?? '';
        return { type: 'RevokeKey', keyId };
      });
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
