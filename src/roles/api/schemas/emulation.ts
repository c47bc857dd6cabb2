import { Type, type Static } from 'typebox';
import type { BrowserOptions } from '#events/session.ts';
import { Nullable, Words } from './fields.ts';

/** What a session's browser pretends to be, in requests and answers. */

/**
 * What a page can be granted without a question, by the names of the Permissions API. `midi-sysex`
 * is `midi` with system-exclusive messages.
 */
export const permissionNames = [
  'accelerometer',
  'background-sync',
  'camera',
  'clipboard-read',
  'clipboard-write',
  'display-capture',
  'geolocation',
  'gyroscope',
  'idle-detection',
  'local-fonts',
  'magnetometer',
  'microphone',
  'midi',
  'midi-sysex',
  'notifications',
  'payment-handler',
  'persistent-storage',
  'screen-wake-lock',
  'storage-access',
  'window-management',
] as const;

/** Metres, where a request names none: what a telephone knows outdoors. */
const ACCURACY = 10;

const Latitude = Type.Number({ minimum: -90, maximum: 90, examples: [47.3769] });
const Longitude = Type.Number({ minimum: -180, maximum: 180, examples: [8.5417] });

/** Fields of a create's body. */
export const requestedEmulation = {
  geolocation: Type.Optional(
    Type.Object(
      {
        latitude: Latitude,
        longitude: Longitude,
        accuracy: Type.Optional(
          Type.Number({
            minimum: 0,
            maximum: 100_000,
            description: `metres; default ${ACCURACY}`,
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          'where the browser says it is, to pages that have the permission `geolocation`; a ' +
          'browser is launched for the session',
      },
    ),
  ),
  user_agent: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      pattern: '^[!-~]([ -~]*[!-~])?$',
      description:
        'sent with each request, and `navigator.userAgent`, in place of Chromium’s own; its ' +
        'client hints stay. A browser is launched for the session',
    }),
  ),
  permissions: Type.Optional(
    Type.Array(Words(permissionNames, {}), {
      maxItems: permissionNames.length,
      description:
        'granted to all pages without a question, by their names in the Permissions API; a ' +
        'browser is launched for the session',
    }),
  ),
};

type Requested = {
  geolocation?: { latitude: number; longitude: number; accuracy?: number };
  user_agent?: string;
  permissions?: string[];
};

/** The browser options; what is not asked for is absent, and so is an empty list. */
export function emulationOf({
  geolocation,
  user_agent: userAgent,
  permissions = [],
}: Requested): Pick<BrowserOptions, 'geolocation' | 'userAgent' | 'permissions'> {
  return {
    ...(geolocation === undefined
      ? {}
      : {
          geolocation: {
            latitude: geolocation.latitude,
            longitude: geolocation.longitude,
            accuracy: geolocation.accuracy ?? ACCURACY,
          },
        }),
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(permissions.length === 0 ? {} : { permissions: [...new Set(permissions)].toSorted() }),
  };
}

/** Fields of a session in an answer. */
export const answeredEmulation = {
  geolocation: Nullable(
    Type.Object({ latitude: Latitude, longitude: Longitude, accuracy: Type.Number() }),
    { examples: [null], description: 'where the browser says it is; null: it does not know' },
  ),
  user_agent: Nullable(Type.String(), {
    examples: [null],
    description: 'null: Chromium’s own',
  }),
  permissions: Type.Array(Type.String(), {
    examples: [[]],
    description: 'granted to all pages without a question',
  }),
};

export function presentEmulation({ geolocation, userAgent, permissions }: BrowserOptions) {
  return {
    geolocation: geolocation ?? null,
    user_agent: userAgent ?? null,
    permissions: permissions ?? [],
  } satisfies {
    [Field in keyof typeof answeredEmulation]: Static<(typeof answeredEmulation)[Field]>;
  };
}
