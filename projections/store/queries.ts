import { pageMax } from './limits.ts';
import type { Views } from './views.ts';

/**
 * All views of a list, parsed, newest first, up to `max`. Read page by page: a view that enters or
 * leaves meanwhile may be missed or come twice, so whoever acts on them decides again.
 */
export async function readList<View>(
  views: Views,
  projection: string,
  list: string,
  max = 100_000,
): Promise<View[]> {
  const found: View[] = [];
  for (let total = 1; found.length < Math.min(total, max);) {
    const query = { lists: [list], offset: found.length, limit: pageMax };
    const page = await views.page(projection, query);
    const items = JSON.parse(`[${page.items}]`) as View[];
    if (items.length === 0) break;
    found.push(...items);
    total = page.total;
  }
  return found;
}
