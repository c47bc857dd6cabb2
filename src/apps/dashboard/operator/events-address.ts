import type { Moment } from '../shell/moment-text.ts';

/** What events are of, in the words of the page. */
export const KINDS = [
  { kind: 'session', title: 'sessions', isOrganizations: true },
  { kind: 'workload', title: 'browsers', isOrganizations: false },
  { kind: 'server', title: 'servers', isOrganizations: false },
  { kind: 'archive', title: 'archive', isOrganizations: false },
  { kind: 'ledger', title: 'credits', isOrganizations: true },
  { kind: 'profile', title: 'profiles', isOrganizations: true },
  { kind: 'organization', title: 'organizations', isOrganizations: true },
] as const;

type Asked = Partial<Record<'kind' | 'organization' | 'id' | 'at', string>>;

/** The address of the page that shows these events; with `at` up to a sequence or a time. */
export function eventsAddress(asked: Asked): string {
  return `/operator?${new URLSearchParams({ tab: 'events', ...asked }).toString()}`;
}

/** What the page asks the API for. */
export function eventsPath(address: URLSearchParams, at: Moment | null): string {
  const asked = new URLSearchParams();
  for (const name of ['kind', 'organization', 'id', 'before']) {
    const value = address.get(name);
    if (value !== null) asked.set(name, value);
  }
  if (at !== null && 'time' in at) asked.set('as_of', at.time);
  if (at !== null && 'sequence' in at && !asked.has('before'))
    asked.set('before', `${at.sequence + 1}`);
  return `/api/operator/events?${asked.toString()}`;
}

/**
 * The parameters with another value of one of them; null: without it. Another filter begins at the
 * newest event of the moment again; another kind has other ids, and servers and browsers are of no
 * organization.
 */
export function withParameter(
  address: URLSearchParams,
  name: string,
  value: string | null,
): URLSearchParams {
  const changed = new URLSearchParams(address);
  changed.delete('before');
  const chosen = name === 'kind' ? KINDS.find(({ kind }) => kind === value) : undefined;
  if (name === 'kind') changed.delete('id');
  if (chosen?.isOrganizations === false) changed.delete('organization');
  if (value === null) changed.delete(name);
  else changed.set(name, value);
  return changed;
}
