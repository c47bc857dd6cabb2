import { describe, expect, test } from 'vitest';
import { isRejection } from '#src/kernel/errors.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { ensureOrganization } from '#src/commands/register-organization.ts';
import {
  decideOrganization,
  KEYS_MAX,
  type OrganizationCommand,
} from '#src/kernel/domain/organization/organization.ts';

/** The key that a start configures, and the state of the keys of earlier starts. */

const ASKED = { id: 'dev', name: 'Development', tier: 'max', credits: 0 } as const;
const ORGANIZATION = { kind: 'organization', organizationId: 'dev' } as const;
const [A, B, C] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];

function openOrganization() {
  const context = createCommandContext(createMemoryEventStore(), () => Date.UTC(2026, 10, 22));
  async function decide(command: OrganizationCommand): Promise<void> {
    const handled = await handleCommand<'organization'>(
      context,
      ORGANIZATION,
      (state) => decideOrganization(command, state),
      newMetadata('test'),
    );
    expect(isRejection(handled)).toBe(false);
  }
  return {
    start: (hash: string) =>
      ensureOrganization(
        context,
        ASKED,
        { keyId: 'key_dev', role: 'owner', userId: 'dev', hash },
        () => newMetadata('start'),
      ),
    revoke: (keyId: string) => decide({ type: 'RevokeKey', keyId }),
    issue: (keyId: string, hash: string) =>
      decide({ type: 'IssueKey', key: { keyId, role: 'owner', userId: 'ada', hash } }),
    /** The live keys: id and hash. */
    async keys() {
      const { state } = await loadState<'organization'>(context.eventStore, ORGANIZATION);
      return state?.keys.map(({ keyId, hash }) => [keyId, hash]);
    },
  };
}

describe('the key of a start', () => {
  test('is valid for the organization after each start', async () => {
    const organization = openOrganization();
    expect(await organization.start(A)).toBe('open');
    expect(await organization.start(A)).toBe('open');
    expect(await organization.keys()).toEqual([['key_dev', A]]);
  });

  test('replaces the key of an earlier start, which a later start may issue again', async () => {
    const organization = openOrganization();
    await organization.start(A);
    await organization.issue('key_ada', C);
    for (const hash of [B, C, A]) {
      expect(await organization.start(hash)).toBe('open');
      expect(await organization.keys()).toEqual([
        ['key_ada', C],
        ['key_dev', hash],
      ]);
    }
  });

  test('stays revoked once it was revoked, whichever start configures it', async () => {
    const organization = openOrganization();
    await organization.start(A);
    await organization.revoke('key_dev');
    for (let time = 1; time <= 2; time += 1) {
      expect(await organization.start(A)).toBe('revoked');
      expect(await organization.keys()).toEqual([]);
    }
    expect(await organization.start(B)).toBe('open');
    expect(await organization.start(A)).toBe('revoked');
    expect(await organization.keys()).toEqual([['key_dev_2', B]]);
  });

  test('gets another id after each revocation', async () => {
    const organization = openOrganization();
    const ids = [];
    for (const hash of [A, B, C]) {
      await organization.start(hash);
      const [[id = ''] = []] = (await organization.keys()) ?? [];
      ids.push(id);
      await organization.revoke(id);
    }
    expect(ids).toEqual(['key_dev', 'key_dev_2', 'key_dev_3']);
  });

  test('stays revoked if it was issued and revoked under another id', async () => {
    const organization = openOrganization();
    await organization.start(A);
    await organization.issue('key_ada', B);
    await organization.revoke('key_ada');
    expect(await organization.start(B)).toBe('revoked');
    expect(await organization.keys()).toEqual([['key_dev', A]]);
  });

  test('is not issued beyond an organization’s maximum of keys', async () => {
    const organization = openOrganization();
    await organization.start(A);
    await organization.revoke('key_dev');
    for (let count = 0; count < KEYS_MAX; count += 1) await organization.issue(`key_${count}`, C);
    expect(await organization.start(B)).toMatchObject({ context: { max: KEYS_MAX } });
  });
});
