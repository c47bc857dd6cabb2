import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import { Extension, extensionEvents, organizationExtensionsMax } from './organization/extension.ts';
import { organizationWebhooksMax, Webhook, webhookEvents } from './organization/webhook.ts';
import { ProfileId } from './profile.ts';
import { CarriedForward, KeyId, Moment, OrganizationId, UserId } from './fields.ts';

export const tierNames = ['free', 'pro', 'max'] as const;
export const Tier = Type.Union([Type.Literal('free'), Type.Literal('pro'), Type.Literal('max')], {
  description: 'selects the limits',
});
export type Tier = Static<typeof Tier>;

export const Role = Type.Union(
  [Type.Literal('owner'), Type.Literal('admin'), Type.Literal('member'), Type.Literal('viewer')],
  { description: 'role of the key' },
);
export type Role = Static<typeof Role>;

/** An API key as stored: never the key, only its SHA-256 in hex. */
export const ApiKey = Type.Object({
  keyId: KeyId,
  hash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the key, in hex' }),
  role: Role,
  userId: Type.String({ minLength: 1, maxLength: 256, description: 'user of the key' }),
  /** ISO 8601 UTC; keys issued before this field existed have none. */
  issuedAt: Type.Optional(
    Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
      description: 'ISO 8601 UTC, milliseconds',
    }),
  ),
});
export type ApiKey = Static<typeof ApiKey>;

/** Which sessions a request to stop several was for; fields that are absent do not restrict. */
const SessionFilter = Type.Object(
  {
    status: Type.Optional(Type.String({ description: 'their status' })),
    labels: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'labels that they have' }),
    ),
    createdBefore: Type.Optional(Moment),
    userId: Type.Optional(UserId),
  },
  { description: 'the sessions that were meant' },
);
export type SessionFilter = Static<typeof SessionFilter>;

/** Origins of pages that may embed the screens of an organization's shares. */
const Origins = Type.Array(
  Type.String({ minLength: 1, maxLength: 256, description: 'as `https://app.example.com`' }),
  { maxItems: 16, description: 'origins of pages that may embed shared screens' },
);

export const organizationEvents = {
  'organization.registered': Type.Object({
    name: Type.String({ minLength: 1, maxLength: 128, description: 'for people' }),
    tier: Tier,
  }),
  'organization.tier-changed': Type.Object({ tier: Tier }),
  'organization.key-issued': ApiKey,
  'organization.key-revoked': Type.Object({ keyId: KeyId }),
  'organization.origins-allowed': Type.Object({ origins: Origins }),
  /** One request stopped several sessions; each of their events names this one as its cause. */
  'organization.sessions-stop-requested': Type.Object({
    filter: SessionFilter,
    sessions: Type.Integer({ minimum: 0, description: 'how many sessions were found' }),
    note: Type.Optional(
      Type.String({ maxLength: 512, description: 'what the caller said about the reason' }),
    ),
    by: UserId,
  }),
  /** In one batch with the profile's own event: the limit is decided on the number. */
  'organization.profile-added': Type.Object({
    profileId: ProfileId,
    before: Type.Integer({ minimum: 0, description: 'how many profiles it had before' }),
  }),
  'organization.profile-removed': Type.Object({ profileId: ProfileId }),
  ...extensionEvents,
  ...webhookEvents,
  'organization.carried-forward': CarriedForward,
};
export type OrganizationEvent = EventOf<typeof organizationEvents>;

export const OrganizationState = Type.Object({
  id: OrganizationId,
  name: Type.String(),
  tier: Tier,
  keys: Type.Array(ApiKey, { description: 'keys that are not revoked' }),
  /** Absent: none, like an empty list. */
  allowedOrigins: Type.Optional(Origins),
  /** Absent: it was not counted yet. */
  profiles: Type.Optional(
    Type.Integer({ minimum: 0, description: 'how many profiles the organization has' }),
  ),
  /** Absent: none, like an empty list. */
  extensions: Type.Optional(
    Type.Array(Extension, {
      maxItems: organizationExtensionsMax,
      description: 'browser extensions of the organization, oldest first',
    }),
  ),
  /** Absent: none, like an empty list. */
  webhooks: Type.Optional(
    Type.Array(Webhook, {
      maxItems: organizationWebhooksMax,
      description: 'webhooks of the organization, oldest first',
    }),
  ),
});
export type OrganizationState = Static<typeof OrganizationState>;
