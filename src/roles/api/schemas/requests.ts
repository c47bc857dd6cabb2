import { Type } from 'typebox';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { DURATION_DEFAULT_MS, parseDuration } from '#src/kernel/domain/session/duration.ts';
import { EgressBody } from './egress.ts';
import { SessionExtensionsBody } from './session-extensions.ts';
import { requestedEmulation } from './emulation.ts';
import { checkedByHandler } from './fields.ts';
import { WantedProfile } from './session-profile.ts';

/** Schemas of requests; unknown fields are refused. */

/** Any text: one that is no session's id is SESSION_NOT_FOUND. */
export const SessionPath = Type.Object({ id: Type.String({ description: 'the session’s id' }) });
export const KeyPath = Type.Object({
  key_id: Type.String({ description: 'the key’s id, not the key' }),
});

/**
 * Text of one line: no control character, and no half of a surrogate pair, which UTF-8 cannot hold.
 */
export const LINE = '[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]';
/** The same with tabs and line feeds. */
export const LINES = '[^\\u0000-\\u0008\\u000b-\\u001f\\u007f\\ud800-\\udfff]';

/**
 * `30m`, `1h`, `1h30m` as the service writes them, and minutes alone up to `1440m`. parseDuration
 * also accepts `1h90m` and `01h`: a pattern that did, and refused more than 24 hours, would be
 * long.
 */
const DURATION_PATTERN =
  '^(([1-9]|1[0-9]|2[0-3])h([1-5]?[0-9]m)?|24h|' +
  '([1-9][0-9]{0,2}|1[0-3][0-9]{2}|14[0-3][0-9]|1440)m)$';

/** An invalid value of any type is INVALID_DURATION, with the value that the client sent. */
export const Duration = Type.Unsafe<unknown>(
  checkedByHandler(
    Type.String({
      title: 'Duration',
      pattern: DURATION_PATTERN,
      description: 'hours, minutes or both, like 30m, 1h or 1h30m; 1 minute to 24 hours',
      examples: ['1h30m'],
    }),
  ),
);

/** A duration in ms; absent means the default. The rejection has the value that the client sent. */
export function readDuration(sent: unknown, field = 'duration'): number | Rejection {
  if (sent === undefined) return DURATION_DEFAULT_MS;
  const context = field === 'duration' ? { duration: sent } : { duration: sent, field };
  return parseDuration(sent) ?? reject('INVALID_DURATION', context);
}

/** Client generators support `additionalProperties`; they ignore `patternProperties`. */
const Labels = Type.Unsafe<Record<string, string>>({
  type: 'object',
  propertyNames: { pattern: '^[A-Za-z0-9_.-]{1,63}$' },
  additionalProperties: Type.String({ maxLength: 128, pattern: `^${LINE}*$` }),
  maxProperties: 16,
  description:
    'for searching sessions: at most 16, values of at most 128 characters; names, values and ' +
    '`description` together at most 2,048 bytes of UTF-8',
});

export const CreateSessionBody = Type.Object(
  {
    session_name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        pattern: `^${LINE}+$`,
        description: 'for people; a readable name is generated if it is left out',
      }),
    ),
    description: Type.Optional(
      Type.String({
        maxLength: 1024,
        pattern: `^${LINES}*$`,
        description: 'together with `labels` at most 2,048 bytes of UTF-8',
      }),
    ),
    duration: Type.Optional(Duration),
    idle_timeout: Type.Optional(Duration),
    labels: Type.Optional(Labels),
    viewport: Type.Optional(
      Type.Object(
        {
          width: Type.Integer({ minimum: 320, maximum: 3840 }),
          height: Type.Integer({ minimum: 240, maximum: 2160 }),
        },
        {
          additionalProperties: false,
          description:
            'size of the screen; the window fills it, and the page is smaller by the bars of the ' +
            'window. An idle browser is resized if the width exceeds 500; default 1280 x 800',
        },
      ),
    ),
    locale: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'a language tag, like de-CH, that pages and workers format and sort by; 400 for a ' +
          'language whose dates and numbers the browser does not know, and for variants and ' +
          'extensions. A browser is launched for the session',
      }),
    ),
    timezone: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: '^[A-Za-z0-9_+/-]+$',
        description: 'an IANA time zone, like Europe/Zurich; a browser is launched for the session',
      }),
    ),
    headless: Type.Optional(
      Type.Boolean({
        description:
          'true: a browser without a screen, driven by CDP only: `vnc_url`, `vnc_password` and ' +
          '`viewer_url` are null; a browser is launched for the session. Default false',
      }),
    ),
    extensions: Type.Optional(SessionExtensionsBody),
    egress: Type.Optional(EgressBody),
    record: Type.Optional(
      Type.Boolean({
        description:
          'true: what the screen shows is recorded, and can be watched while the session runs ' +
          'and for some days after; not with `headless`. Default false',
      }),
    ),
    black_box: Type.Optional(
      Type.Boolean({
        description:
          'false: what pages did (console errors, failed requests, exceptions, dialogs, the ' +
          'last address and picture) is not kept with the session’s end. Default true',
      }),
    ),
    ...requestedEmulation,
    profile: Type.Optional(WantedProfile),
  },
  {
    title: 'CreateSession',
    additionalProperties: false,
    examples: [{ session_name: 'checkout-test', duration: '1h30m', labels: { team: 'web' } }],
  },
);

export const UpdateSessionBody = Type.Object(
  {
    session_name: CreateSessionBody.properties.session_name,
    description: CreateSessionBody.properties.description,
    labels: CreateSessionBody.properties.labels,
  },
  {
    title: 'UpdateSession',
    additionalProperties: false,
    minProperties: 1,
    description: 'what is left out stays as it is',
    examples: [{ session_name: 'checkout-test', labels: { team: 'web' } }],
  },
);

export const ExtendSessionBody = Type.Object(
  { duration: Duration },
  { title: 'ExtendSession', additionalProperties: false },
);
