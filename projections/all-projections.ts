import { organizationSessions } from './organization-sessions.ts';
import { idOf, type Projection } from './projection.ts';
import { servers } from './servers.ts';
import { sessionView } from './session-view.ts';
import { workloads } from './workloads.ts';

/** All projections whose views are stored; one that is not in here is never folded. */
export const everyProjection: readonly Projection<unknown>[] = [
  sessionView,
  organizationSessions,
  workloads,
  servers,
];

/** The store that a new version of a projection's views is folded into, beside the one in use. */
export function nextOf(store: string): string {
  return `${store}:next`;
}

/** What to do with a store that nobody promises to keep. */
export type Fate =
  /** It is a rebuild's that was broken off, or what is left of a removed one. */
  | 'removed'
  /** It is of an older version: removed once the projection's own is up to date. */
  | 'outdated'
  | 'left';

export function fateOf(store: string, projections: readonly Projection<unknown>[]): Fate {
  const base = store.replace(/(:next|:old-\d+)+$/, '');
  const [, name, version] = /^(.+):v(\d+)$/.exec(base) ?? [];
  const own = projections.find((projection) => projection.name === name);
  if (own === undefined) return 'left';
  if (base !== store) return 'removed';
  return Number(version) < own.version && store !== idOf(own) ? 'outdated' : 'left';
}
