import { allProjections, retentionOf } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import type { StoreMaintenance, StoreStatus } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';

export type ReadModel = Omit<StoreStatus, 'isInUse'> & {
  /** Events that it has not folded; null: another version's, which is not folded any more. */
  behind: number | null;
  /** In words. */
  state: string;
};

/** The stores of all projections, in alphabetical order. @param end the last sequence */
export async function readReadModels(
  views: Pick<Views, 'checkpoint'> & Pick<StoreMaintenance, 'stores'>,
  end: number,
): Promise<ReadModel[]> {
  const stores = await views.stores();
  const ids = allProjections.map(projectionId);
  for (const id of ids) {
    if (stores.some((store) => store.projection === id)) continue;
    const checkpoint = await views.checkpoint(id);
    stores.push({ projection: id, checkpoint, views: 0, isInUse: false });
  }
  return stores
    .toSorted((a, b) => a.projection.localeCompare(b.projection))
    .map(({ isInUse, ...store }) => {
      const isCurrent = ids.includes(store.projection);
      const behind = isCurrent ? Math.max(0, end - store.checkpoint) : null;
      return { ...store, behind, state: stateOf({ ...store, isInUse }) };
    });
}

function stateOf({ projection, isInUse }: StoreStatus): string {
  const isOwn = allProjections.some((one) => projectionId(one) === projection);
  if (isOwn) return isInUse ? 'in use' : 'no projector runs';
  if (projection.endsWith(':next')) return isInUse ? 'being rebuilt' : 'left by a rebuild';
  if (projection.includes(':old-')) return 'being removed';
  if (isInUse) return 'in use by another version';
  return retentionOf(projection, allProjections) === 'outdated' ? 'outdated' : 'unknown';
}
