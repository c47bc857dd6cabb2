import type { ViewWrite } from './store/views.ts';

export type Stored = { sequence: number; view: string; lists: readonly string[]; order: number };
/** All that is held of one projection. */
export type Store = {
  checkpoint: number;
  logId: string | null;
  views: Map<string, Stored>;
  /** List → key → order. */
  lists: Map<string, Map<string, number>>;
};

/** Writes a view and moves it to where it stands by now. */
export function put(store: Store, { key, sequence, view, lists, order }: ViewWrite): void {
  for (const list of store.views.get(key)?.lists ?? []) store.lists.get(list)?.delete(key);
  if (view === null) {
    store.views.delete(key);
    return;
  }
  store.views.set(key, { sequence, view, lists, order });
  for (const list of lists) {
    const members = store.lists.get(list) ?? new Map<string, number>();
    store.lists.set(list, members.set(key, order));
  }
}
