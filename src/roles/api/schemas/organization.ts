import { Type } from 'typebox';
import { Role, tierNames } from '#events/organization.ts';
import { Count, Nullable, Words } from './fields.ts';

/** Schemas of an organization: its keys, its limits, its balance. */

const KEY_ID = 'key_5uLw2ZfQx8v1KpR7tYc0Ng';
const RoleName = Words(
  Role.anyOf.map((role) => role.const),
  { title: 'Role', examples: ['member'] },
);

const keyFields = {
  key_id: Type.String({ examples: [KEY_ID] }),
  role: RoleName,
  user_id: Type.String({
    examples: ['ci'],
    description: 'user of the sessions that the key creates',
  }),
  issued_at: Nullable(Type.String({ format: 'date-time' }), {
    description: 'ISO 8601 UTC; null if it was not recorded',
    examples: ['2026-11-20T09:30:00.000Z'],
  }),
};

export const KeyList = Type.Object(
  { keys: Type.Array(Type.Object(keyFields, { title: 'Key' })) },
  { title: 'KeyList' },
);

export const IssuedKey = Type.Object(
  {
    ...keyFields,
    api_key: Type.String({
      description: 'the credential, returned only once: the service stores its hash',
      examples: ['bss_acme_mBq0wX4v7sYt1uJkZc9Rf3LhN6aPdE2o'],
    }),
  },
  { title: 'IssuedKey' },
);

export const RevokedKey = Type.Object(
  {
    message: Type.String({ examples: [`Key ${KEY_ID} has been revoked.`] }),
    key_id: Type.String({ examples: [KEY_ID] }),
  },
  { title: 'RevokedKey' },
);

/** No control character, and no half of a surrogate pair, which UTF-8 cannot hold. */
const USER = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$';

export const IssueKeyBody = Type.Object(
  {
    role: RoleName,
    user_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        pattern: USER,
        description: 'user of the key; default: the caller',
      }),
    ),
  },
  {
    title: 'IssueKey',
    additionalProperties: false,
    examples: [{ role: 'member', user_id: 'ci' }],
  },
);

const ORIGINS_MAX = 16;
const originsField = {
  allowed_origins: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
    maxItems: ORIGINS_MAX,
    examples: [['https://app.example.com']],
    description: 'origins of pages that may embed the page of a share',
  }),
};

export const AllowedOrigins = Type.Object(originsField, { title: 'AllowedOrigins' });

export const AllowOriginsBody = Type.Object(originsField, {
  title: 'AllowOrigins',
  additionalProperties: false,
  examples: [{ allowed_origins: ['https://app.example.com'] }],
});

export const Organization = Type.Object(
  {
    id: Type.String({ examples: ['acme'] }),
    name: Type.String({ examples: ['Acme'] }),
    organization_role: Words(
      Role.anyOf.map((role) => role.const),
      { description: 'role of the caller', examples: ['member'] },
    ),
    user_id: Type.String({ examples: ['ada'], description: 'the caller, as hand-offs name it' }),
    tier: Words(tierNames, { examples: ['pro'] }),
    limits: Type.Object({ requests_per_minute: Count(500), concurrent_sessions: Count(50) }),
    concurrent_sessions: Type.Integer({
      minimum: 0,
      examples: [3],
      description: 'sessions that have not ended; they count towards the limit',
    }),
    credits: Type.Object({
      balance: Type.Integer({
        examples: [29_500],
        description: 'credits that a new session can reserve',
      }),
      reserved: Type.Integer({
        examples: [270],
        description: 'credits reserved by sessions that have not ended',
      }),
      used: Count(230),
      granted: Count(30_000),
    }),
    ...originsField,
  },
  { title: 'Organization' },
);
