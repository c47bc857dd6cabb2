import type {
  ApiKey,
  OrganizationEvent,
  OrganizationState,
  SessionFilter,
  Tier,
} from '#events/organization.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { decideExtension, withoutExtension, type ExtensionCommand } from './extensions.ts';
import { decideProfileCount, type ProfileCountCommand } from './profiles.ts';
import {
  decideWebhook,
  evolveWebhooks,
  isWebhookCommand,
  isWebhookEvent,
  type WebhookCommand,
} from './webhooks.ts';

/** Live keys an organization may have: each of its events carries all of its state. */
export const KEYS_MAX = 200;

export type OrganizationCommand =
  | { type: 'RegisterOrganization'; name: string; tier: Tier }
  | { type: 'ChangeTier'; tier: Tier }
  | { type: 'IssueKey'; key: ApiKey }
  | { type: 'RevokeKey'; keyId: string }
  | { type: 'AllowOrigins'; origins: string[] }
  | ExtensionCommand
  | ProfileCountCommand
  | WebhookCommand
  /** `sessions`: how many were found; `note`: what the caller says about the reason. */
  | {
      type: 'StopSessions';
      filter: SessionFilter;
      sessions: number;
      note?: string;
      by: string;
    };

export function decideOrganization(
  command: OrganizationCommand,
  organization: OrganizationState | null,
): OrganizationEvent[] | Rejection {
  if (command.type === 'RegisterOrganization') {
    if (organization !== null) return reject('INVALID_REQUEST', {}, { message: 'It exists.' });
    const { name, tier } = command;
    return [{ type: 'organization.registered', data: { name, tier } }];
  }
  if (organization === null)
    return reject('NOT_FOUND', {}, { message: 'There is no organization with this id.' });
  if (isWebhookCommand(command)) return decideWebhook(command, organization);
  switch (command.type) {
    case 'ChangeTier':
      return command.tier === organization.tier
        ? []
        : [{ type: 'organization.tier-changed', data: { tier: command.tier } }];
    case 'IssueKey':
      if (organization.keys.length >= KEYS_MAX)
        return reject('INVALID_REQUEST', { max: KEYS_MAX }, { message: 'Too many live keys.' });
      return [{ type: 'organization.key-issued', data: command.key }];
    case 'RevokeKey':
      if (!organization.keys.some((key) => key.keyId === command.keyId))
        return reject('NOT_FOUND', { key_id: command.keyId }, { message: 'No such live key.' });
      return [{ type: 'organization.key-revoked', data: { keyId: command.keyId } }];
    case 'AllowOrigins': {
      const { origins } = command;
      const isSame = JSON.stringify(origins) === JSON.stringify(organization.allowedOrigins ?? []);
      return isSame ? [] : [{ type: 'organization.origins-allowed', data: { origins } }];
    }
    case 'AddExtension':
    case 'RemoveExtension':
      return decideExtension(command, organization);
    case 'CountProfile':
    case 'UncountProfile':
      return decideProfileCount(command, organization);
    case 'StopSessions':
      return stopSessions(command);
  }
}

/** A filter that restricts nothing would stop all sessions by a slip. No session: no event. */
function stopSessions({
  filter,
  sessions,
  note,
  by,
}: Extract<OrganizationCommand, { type: 'StopSessions' }>): OrganizationEvent[] | Rejection {
  if (!isRestricting(filter)) return reject('INVALID_REQUEST', { field: 'filter' }, NO_RESTRICTION);
  if (sessions === 0) return [];
  const data = { filter, sessions, by, ...(note === undefined ? {} : { note }) };
  return [{ type: 'organization.sessions-stop-requested', data }];
}

export const NO_RESTRICTION = { message: 'filter: name at least one restriction.' };

/** Whether the filter leaves any session out. */
export function isRestricting({ status, labels, createdBefore, userId }: SessionFilter): boolean {
  const isLabelled = Object.keys(labels ?? {}).length > 0;
  return [status, createdBefore, userId].some((one) => one !== undefined) || isLabelled;
}

/** @throws RangeError for an event before `registered`, which no valid history contains. */
export function evolveOrganization(
  organization: OrganizationState | null,
  event: OrganizationEvent,
  id: string,
): OrganizationState {
  if (event.type === 'organization.registered') return { id, ...event.data, keys: [] };
  if (organization === null)
    throw new RangeError(`${event.type} before organization.registered: the history is incomplete`);
  if (isWebhookEvent(event))
    return { ...organization, webhooks: evolveWebhooks(organization.webhooks ?? [], event) };
  const { keys } = organization;
  switch (event.type) {
    case 'organization.tier-changed':
      return { ...organization, tier: event.data.tier };
    case 'organization.key-issued':
      return { ...organization, keys: [...keys, event.data] };
    case 'organization.key-revoked':
      return { ...organization, keys: keys.filter(({ keyId }) => keyId !== event.data.keyId) };
    case 'organization.origins-allowed':
      return { ...organization, allowedOrigins: event.data.origins };
    case 'organization.profile-added':
      return { ...organization, profiles: event.data.before + 1 };
    case 'organization.profile-removed':
      return { ...organization, profiles: Math.max(0, (organization.profiles ?? 0) - 1) };
    case 'organization.extension-uploaded':
      return { ...organization, extensions: [...(organization.extensions ?? []), event.data] };
    case 'organization.extension-removed':
      return withoutExtension(organization, event.data.extensionId);
    case 'organization.sessions-stop-requested':
    case 'organization.carried-forward':
      return organization;
  }
}
