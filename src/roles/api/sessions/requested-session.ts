import type { Static } from 'typebox';
import { isId } from '#events/subjects.ts';
import type { WantedProfile } from '#src/commands/session-profile.ts';
import { unknownExtensions } from '#src/kernel/domain/organization/extensions.ts';
import type { CreateSession } from '#src/kernel/domain/session/commands.ts';
import { beyondLifetime } from '#src/kernel/domain/session/duration.ts';
import { tooMuchText } from '#src/kernel/domain/session/text-size.ts';
import { isRejection, reject, type Rejection } from '#src/kernel/errors.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { derivedId, newId } from '#src/kernel/ids.ts';
import type { Caller } from '../auth/authenticate.ts';
import { loadSession, type ApiDependencies } from '../dependencies.ts';
import { invalid } from '../http/validation.ts';
import {
  readEgress,
  withoutPassword,
  type IsOwnHost,
  type ProxyPasswordSealer,
} from '../schemas/egress.ts';
import { emulationOf } from '../schemas/emulation.ts';
import { readDuration, type CreateSessionBody } from '../schemas/requests.ts';
import { fingerprintOf } from './idempotency.ts';
import { localeOf } from './locale.ts';
import { generateName } from './session-name.ts';

/** What a create's body asks for, as a command; for each route that makes sessions. */

const NO_LOCALE =
  'locale: has to be a language, with a script and a region if wanted, whose dates and numbers ' +
  'the browser knows, like de-CH or zh-Hant-TW; without variants and extensions.';

/**
 * The requested session and its id, or the rejection. With a `key`, an Idempotency-Key, the id is
 * that of each repeat.
 */
export function readRequest(
  body: Static<typeof CreateSessionBody>,
  caller: Caller,
  { key, now, maxLifetimeMs, passwords, isOwnHost, mcpSessionId }: Read,
): { id: string; command: CreateSession } | Rejection {
  const asked = readDuration(body.duration);
  if (typeof asked !== 'number') return asked;
  const isByDefault = body.duration === undefined;
  if (asked > maxLifetimeMs && !isByDefault)
    return beyondLifetime(String(body.duration), maxLifetimeMs);
  const tooMuch = tooMuchText(body);
  if (tooMuch !== null) return tooMuch;
  const durationMs = Math.min(asked, maxLifetimeMs);
  const idleTimeoutMs =
    body.idle_timeout === undefined ? null : readDuration(body.idle_timeout, 'idle_timeout');
  if (idleTimeoutMs !== null && typeof idleTimeoutMs !== 'number') return idleTimeoutMs;
  if (body.profile !== undefined && !isId(body.profile.id))
    return reject('PROFILE_NOT_FOUND', { profile_id: body.profile.id });
  const timezone = body.timezone === undefined ? null : timezoneOf(body.timezone);
  if (body.timezone !== undefined && timezone === null)
    return reject('INVALID_REQUEST', { field: 'timezone', timezone: body.timezone });
  const locale = body.locale === undefined ? null : localeOf(body.locale);
  if (body.locale !== undefined && locale === null)
    return invalid({ field: 'locale', locale: body.locale }, NO_LOCALE);
  if (body.record === true && body.headless === true)
    return invalid({ record: true, headless: true }, 'A headless session has no screen to record.');
  const id = key === null ? newId('ses') : derivedId('ses', caller.organizationId, key);
  const about = { ...passwords, isOwnHost };
  const egress = body.egress === undefined ? null : readEgress(body.egress, id, about);
  if (egress !== null && isRejection(egress)) return egress;
  const command = toCommand({ ...body, locale, timezone }, caller, {
    durationMs,
    idleTimeoutMs,
    now,
    fingerprint: key === null ? null : fingerprintOf(withoutPassword(body, passwords)),
    ...(egress === null ? {} : { egress }),
    ...(mcpSessionId === undefined ? {} : { owner: { mcpSessionId } }),
  });
  return { id, command };
}

/** Locale and time zone by the names that browsers know. */
type AsBrowsersWrite = Omit<Static<typeof CreateSessionBody>, 'locale' | 'timezone'> &
  Pick<CreateSession['browser'], 'locale' | 'timezone'>;

type Read = {
  key: string | null;
  now: number;
  maxLifetimeMs: number;
  passwords: ProxyPasswordSealer;
  isOwnHost: IsOwnHost;
  /** The MCP session that the session ends with. */
  mcpSessionId?: string | undefined;
};

function toCommand(
  body: AsBrowsersWrite,
  caller: Caller,
  read: Pick<
    CreateSession,
    'durationMs' | 'idleTimeoutMs' | 'now' | 'fingerprint' | 'egress' | 'owner'
  >,
): CreateSession {
  return {
    type: 'CreateSession',
    name: body.session_name ?? generateName(),
    description: body.description ?? '',
    userId: caller.userId,
    labels: body.labels ?? {},
    browser: {
      viewport: body.viewport ?? null,
      locale: body.locale,
      timezone: body.timezone,
      ...(body.headless === true ? { headless: true } : {}),
      ...(body.extensions?.length ? { extensions: body.extensions } : {}),
      ...emulationOf(body),
    },
    ...(body.record === true ? { record: true } : {}),
    queueWeight: caller.limits.queueWeight,
    ...(body.black_box === false ? { blackBox: false } : {}),
    ...read,
  };
}

/** The profile that the browser is to begin with; null: none. */
export function wantedProfile({ profile }: Static<typeof CreateSessionBody>): WantedProfile | null {
  if (profile === undefined) return null;
  const { id, version = null, save = false } = profile;
  return { id, version, save };
}

/**
 * The time zone by the name that browsers know; null: there is none. Browsers take a name in its
 * exact case alone, and no offset: with others their pages are in UTC.
 */
function timezoneOf(name: string): string | null {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    return /^[+-]/.test(timeZone) ? null : timeZone;
  } catch {
    return null;
  }
}

/** Null: the organization has the extensions, or the request repeats one that was accepted. */
export async function refuseUnknownExtensions(
  context: ApiDependencies['context'],
  organizationId: string,
  { id, command }: { id: string; command: CreateSession },
): Promise<Rejection | null> {
  const { extensions } = command.browser;
  if (extensions === undefined) return null;
  const ref = { kind: 'organization', organizationId } as const;
  // From the leader: another process may have got the upload a moment ago.
  const fresh = { fromLeader: true };
  const { state } = await loadState<'organization'>(context.eventStore, ref, fresh);
  const unknown = unknownExtensions(extensions, state);
  if (unknown.length === 0) return null;
  const isRepeat = (await loadSession(context, organizationId, id)) !== null;
  return isRepeat ? null : reject('UNKNOWN_EXTENSION', { extension_ids: unknown });
}
