import { describe, expect, it } from 'vitest';
import { organizationExtensionsMax, type Extension } from '#events/organization/extension.ts';
import type { OrganizationEvent } from '#events/organization.ts';
import { unknownExtensions } from '#src/kernel/domain/organization/extensions.ts';
import { organization } from '#test/support/given-when-then.ts';

const { given } = organization;
const registered: OrganizationEvent = {
  type: 'organization.registered',
  data: { name: 'Acme', tier: 'free' },
};

function extension(number: number): Extension {
  const sha256 = number.toString(16).padStart(64, '0');
  const facts = { name: 'Marker', version: '1.2', bytes: 480, sha256 };
  const extensionId = `ext_${sha256.slice(-32)}`;
  return { extensionId, ...facts, uploadedAt: '2026-11-20T09:30:00.000Z', by: 'ada' };
}
const uploaded = (number: number): OrganizationEvent => ({
  type: 'organization.extension-uploaded',
  data: extension(number),
});
const add = (number: number) => ({ type: 'AddExtension', extension: extension(number) }) as const;
const { extensionId } = extension(1);

describe('extensions of an organization', () => {
  it('are added once: the same bytes are the same extension', () => {
    given(registered).when(add(1)).then(uploaded(1));
    given(registered, uploaded(1)).when(add(1)).thenNothing();
    given(registered, uploaded(1)).stateIs({ extensions: [extension(1)] });
  });

  it('are so many at most', () => {
    const all = Array.from({ length: organizationExtensionsMax }, (_, at) => uploaded(at));
    given(registered, ...all)
      .when(add(99))
      .thenRejected('EXTENSION_LIMIT_EXCEEDED', { limit: organizationExtensionsMax });
    given(registered, ...all)
      .when(add(3))
      .thenNothing();
  });

  it('are removed, if they are there', () => {
    const removed: OrganizationEvent = {
      type: 'organization.extension-removed',
      data: { extensionId, by: 'ada' },
    };
    const remove = { type: 'RemoveExtension', extensionId, by: 'ada' } as const;
    given(registered, uploaded(1)).when(remove).then(removed);
    given(registered, uploaded(1), uploaded(2), removed).stateIs({ extensions: [extension(2)] });
    given(registered, uploaded(1), removed)
      .when(remove)
      .thenRejected('EXTENSION_NOT_FOUND', { extension_id: extensionId });
  });

  it('are known to it alone', () => {
    expect(unknownExtensions([extensionId], null)).toEqual([extensionId]);
    const has = { extensions: [extension(1)] };
    expect(unknownExtensions([extensionId, 'ext_2'], has)).toEqual(['ext_2']);
  });
});
