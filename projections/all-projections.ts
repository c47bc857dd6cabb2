import { organizationSessions } from './organization-sessions.ts';
import { projectionId, type Projection } from './projection.ts';
import { profiles } from './profiles.ts';
import { servers } from './servers.ts';
import { sessionView } from './session-view.ts';
import { workloads } from './workloads.ts';

/** All projections with stored views. A projection that is not listed here is never folded. */
export const allProjections: readonly Projection<unknown>[] = [
  sessionView,
  organizationSessions,
  workloads,
  servers,
  profiles,
];

/** Name of the store that a rebuild folds into, beside the store in use. */
export function rebuildStoreOf(store: string): string {
  return `${store}:next`;
}

/** What to do with a store that no process uses. */
export type Retention =
  /** Remove it: an interrupted rebuild or an interrupted removal left it. */
  | 'leftover'
  /** An older version: remove it once the current version is up to date. */
  | 'outdated'
  /** Keep it: the current version, a newer one, or an unknown projection. */
  | 'kept';

/** Decides by the store's name: `<projection>:v<version>` and the suffixes of maintenance. */
export function retentionOf(store: string, projections: readonly Projection<unknown>[]): Retention {
  const base = store.replace(/(:next|:old-\d+)+$/, '');
  const [, name, version] = /^(.+):v(\d+)$/.exec(base) ?? [];
  const own = projections.find((projection) => projection.name === name);
  if (own === undefined) return 'kept';
  if (base !== store) return 'leftover';
  return Number(version) < own.version && store !== projectionId(own) ? 'outdated' : 'kept';
}
