import { Type } from 'typebox';
import { Nullable } from './fields.ts';

/** Schemas of a session's profile. */

const EXAMPLE = 'prf_8v1KpR7tYc0NgXb4n9T6kL';

/** The profile that a session asks for. */
export const WantedProfile = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 64, description: 'the profile’s id' }),
    version: Type.Optional(
      Type.Integer({ minimum: 1, description: 'a version that is kept; default: the newest' }),
    ),
    save: Type.Optional(
      Type.Boolean({
        description:
          'true: the profile is saved when the browser is closed at the session’s end. One open ' +
          'session at a time may; reading is free. Default false',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'a profile that the browser begins with: cookies, storage and service workers of earlier ' +
      'sessions. A browser is launched for the session',
  },
);

/** The profile in the answers about a session. */
export const ProfileOfSession = Type.Object(
  {
    id: Type.String({ examples: [EXAMPLE] }),
    version: Nullable(Type.Integer({ minimum: 1, examples: [3] }), {
      description: 'what its browser began with; null: an empty profile',
    }),
    save: Type.Boolean({ examples: [true] }),
    saved_version: Nullable(Type.Integer({ minimum: 1, examples: [4] }), {
      description: 'the last version that it has saved; null: none yet',
    }),
  },
  { title: 'SessionProfile' },
);
