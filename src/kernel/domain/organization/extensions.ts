import { organizationExtensionsMax, type Extension } from '#events/organization/extension.ts';
import type { OrganizationEvent, OrganizationState } from '#events/organization.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';

export type ExtensionCommand =
  | { type: 'AddExtension'; extension: Extension }
  | { type: 'RemoveExtension'; extensionId: string; by: string };

/** An extension that is there already is not added again: its id is that of its bytes. */
export function decideExtension(
  command: ExtensionCommand,
  { extensions = [] }: Pick<OrganizationState, 'extensions'>,
): OrganizationEvent[] | Rejection {
  if (command.type === 'RemoveExtension') {
    const { extensionId, by } = command;
    if (!has(extensions, extensionId))
      return reject('EXTENSION_NOT_FOUND', { extension_id: extensionId });
    return [{ type: 'organization.extension-removed', data: { extensionId, by } }];
  }
  const { extensionId } = command.extension;
  if (has(extensions, extensionId)) return [];
  const refusal = refuseExtension({ extensions }, extensionId);
  if (refusal !== null) return refusal;
  return [{ type: 'organization.extension-uploaded', data: command.extension }];
}

/** Why an extension cannot be added; null: it can, or is there. */
export function refuseExtension(
  { extensions = [] }: Pick<OrganizationState, 'extensions'>,
  extensionId: string,
): Rejection | null {
  if (has(extensions, extensionId) || extensions.length < organizationExtensionsMax) return null;
  return reject('EXTENSION_LIMIT_EXCEEDED', { limit: organizationExtensionsMax });
}

function has(extensions: readonly Extension[], id: string): boolean {
  return extensions.some(({ extensionId }) => extensionId === id);
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
