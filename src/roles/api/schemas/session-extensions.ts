import { Type } from 'typebox';
import { sessionExtensionsMax } from '#events/organization/extension.ts';

/** The field of a session's request. */
export const SessionExtensionsBody = Type.Array(Type.String({ maxLength: 100 }), {
  maxItems: sessionExtensionsMax,
  uniqueItems: true,
  description:
    'ids of uploaded extensions that the browser has; a browser is launched for the session. ' +
    'Default none',
  examples: [],
});
