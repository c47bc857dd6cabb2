import { everyProjection, fateOf } from '#projections/all-projections.ts';
import { idOf } from '#projections/projection.ts';
import type { StoreFacts } from '#projections/store/maintenance.ts';
import type { Command } from './command.ts';
import { layOut } from './output.ts';
import { thousands } from './progress-line.ts';

export const listProjections: Command = {
  name: 'projections list',
  summary: 'List the read models, how far they are, and what else is stored of them',
  options: {},
  read() {
    return async ({ desk, openViews }) => {
      const views = await openViews();
      const stores = await views.stores();
      const ends = new Map<string, number>();
      for (const projection of everyProjection) {
        const id = idOf(projection);
        ends.set(id, await desk.log.lastSequence(projection.subjects));
        if (!stores.some((store) => store.projection === id))
          stores.push({
            projection: id,
            checkpoint: await views.checkpoint(id),
            views: 0,
            isKept: false,
          });
      }
      const json = stores
        .toSorted((a, b) => a.projection.localeCompare(b.projection))
        .map((store) => {
          const end = ends.get(store.projection);
          const behind = end === undefined ? null : Math.max(0, end - store.checkpoint);
          return { ...store, isKept: undefined, behind, state: stateOf(store) };
        });
      const rows = json.map((store) => [
        store.projection,
        thousands(store.views),
        thousands(store.checkpoint),
        store.behind === null ? '–' : thousands(store.behind),
        store.state,
      ]);
      const heads = ['PROJECTION', 'VIEWS', 'FOLDED TO', 'BEHIND', 'STATE'];
      return { json, text: layOut(heads, rows).join('\n') };
    };
  },
};

function stateOf({ projection, isKept }: StoreFacts): string {
  const isOwn = everyProjection.some((one) => idOf(one) === projection);
  if (isOwn) return isKept ? 'in use' : 'nobody keeps it folded';
  if (projection.endsWith(':next')) return isKept ? 'being rebuilt' : 'left by a rebuild';
  if (projection.includes(':old-')) return 'being removed';
  if (isKept) return 'in use by another version';
  return fateOf(projection, everyProjection) === 'outdated' ? 'outdated' : 'unknown';
}
