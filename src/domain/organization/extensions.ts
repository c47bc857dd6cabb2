import { organizationExtensionsMax, type Extension } from '#events/organization/extension.ts';
import type { OrganizationEvent, OrganizationState } from '#events/organization.ts';
import { reject, type Rejection } from '#src/errors.ts';

export type ExtensionCommand =
  | { type: 'AddExtension'; extension: Extension }
  | { type: 'RemoveExtension'; extensionId: string; by: string };

/** An extension that is there already is not added again: its id is that of its bytes. */
export function decideExtension(
  command: ExtensionCommand,
  { extensions = [] }: Pick<OrganizationState, 'extensions'>,
): OrganizationEvent[] | Rejection {
  const has = (id: string) => extensions.some(({ extensionId }) => extensionId === id);
  if (command.type === 'RemoveExtension') {
    const { extensionId, by } = command;
    if (!has(extensionId)) return reject('EXTENSION_NOT_FOUND', { extension_id: extensionId });
    return [{ type: 'organization.extension-removed', data: { extensionId, by } }];
  }
  if (has(command.extension.extensionId)) return [];
  if (extensions.length >= organizationExtensionsMax)
    return reject('EXTENSION_LIMIT_EXCEEDED', { limit: organizationExtensionsMax });
  return [{ type: 'organization.extension-uploaded', data: command.extension }];
}

export function withoutExtension(
  organization: OrganizationState,
  removed: string,
): OrganizationState {
  const { extensions = [] } = organization;
  return { ...organization, extensions: extensions.filter((one) => one.extensionId !== removed) };
}

/** The asked extensions that the organization does not have. */
export function unknownExtensions(
  asked: readonly string[],
  organization: Pick<OrganizationState, 'extensions'> | null,
): string[] {
  const known = new Set(organization?.extensions?.map(({ extensionId }) => extensionId));
  return asked.filter((id) => !known.has(id));
}
