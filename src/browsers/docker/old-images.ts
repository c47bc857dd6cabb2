import type Docker from 'dockerode';
import {
  listBrowserImages,
  presentRecipe,
  temporarySince,
  type BrowserImage,
} from './browser-image.ts';
import { bounded, statusOf } from './engine.ts';
import { BROWSER } from './image.ts';

/** Images of another recipe serve other releases of this service; after this they are removed. */
const OTHERS_KEPT_MS = 30 * 86_400_000;
/** The newest images of this recipe, which stay: one to go back to. */
const KEPT = 2;

/** How many containers there are of each image, by its id; running and ended. */
export async function countContainers(docker: Docker): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { ImageID } of await docker.listContainers({ all: true, ...bounded() }))
    counts.set(ImageID, (counts.get(ImageID) ?? 0) + 1);
  return counts;
}

/** The images that are to be removed: those that neither run nor may be needed again. Pure. */
export function removable(
  images: readonly BrowserImage[],
  { recipe, isUsed, now }: { recipe: string; isUsed: (id: string) => boolean; now: number },
): BrowserImage[] {
  const newestFirst = images.toSorted((one, other) => other.createdAt - one.createdAt);
  const own = newestFirst.filter((image) => image.recipe === recipe).slice(KEPT);
  const others = newestFirst.filter(
    (image) => image.recipe !== recipe && now - image.createdAt > OTHERS_KEPT_MS,
  );
  return [...own, ...others].filter(({ id }) => !isUsed(id));
}

/** Removes old images that no container uses, and what killed builds have left. @returns names */
export async function removeOldImages(docker: Docker): Promise<string[]> {
  const counts = await countContainers(docker);
  const images = await listBrowserImages(docker, null);
  const old = removable(images, {
    recipe: presentRecipe(),
    isUsed: (id) => counts.has(id),
    now: Date.now(),
  });
  const left = await listAbandoned(docker);
  const removed: string[] = [];
  for (const { id, name } of [...old, ...left])
    try {
      // Without force: the engine refuses if a container has been created from it meanwhile.
      await docker.getImage(id).remove(bounded());
      removed.push(name);
    } catch (error) {
      if (statusOf(error) !== 409 && statusOf(error) !== 404) throw error;
    }
  return removed;
}

/** A build ends within 20 minutes. */
const ABANDONED_MS = 60 * 60_000;

/** The temporary tags of builds whose process was killed. */
async function listAbandoned(docker: Docker): Promise<{ id: string; name: string }[]> {
  const filters = JSON.stringify({ reference: [`${BROWSER.repository}:building-*`] });
  const infos = await docker.listImages({ filters, ...bounded() });
  const tags = infos.flatMap(({ RepoTags }) => (RepoTags as string[] | null) ?? []);
  return tags
    .filter((tag) => Date.now() - (temporarySince(tag) ?? Date.now()) > ABANDONED_MS)
    .map((tag) => ({ id: tag, name: tag }));
}
