import type { Config } from '#src/kernel/config/config.ts';
import { BadConfig } from '#src/kernel/config/parse.ts';
import {
  buildBrowserImage,
  findBrowserImage,
  listBrowserImages,
  type BrowserImage,
} from '#src/browsers/docker/browser-image.ts';
import { countContainers, removeOldImages } from '#src/browsers/docker/old-images.ts';
import { connectEngine } from '#src/browsers/docker/engine.ts';

export { DockerUnavailable } from '#src/browsers/docker/engine.ts';

/** An image of the browsers on the configured engine, for the command line. */
export type ListedImage = BrowserImage & {
  /** Of containers that run from it or have run from it. */
  containers: number;
  /** Whether new browsers run from it. */
  isCurrent: boolean;
};

export type BuiltImage = {
  built: BrowserImage;
  /** What new browsers ran from before; null: there was none. */
  before: BrowserImage | null;
  /** The names of older images that were removed. */
  removed: string[];
};

/** The operator's image and those built here, newest first. @throws BadConfig, DockerUnavailable */
export async function listImages(config: Config): Promise<ListedImage[]> {
  const { host, image: given } = dockerOf(config);
  const { docker } = await connectEngine(host);
  const current = await findBrowserImage(docker, given);
  const own = await listBrowserImages(docker, null);
  const counts = await countContainers(docker);
  const isListed = current === null || own.some(({ id }) => id === current.id);
  return [...own, ...(isListed ? [] : [current])]
    .toSorted((one, other) => other.createdAt - one.createdAt)
    .map((image) => {
      const containers = counts.get(image.id) ?? 0;
      return { ...image, containers, isCurrent: image.id === current?.id };
    });
}

/**
 * Builds the image anew, with a base image from the registry where one answers, and removes old
 * images that no container uses. @throws BadConfig, DockerUnavailable
 */
export async function buildImage(
  config: Config,
  print: (line: string) => void,
): Promise<BuiltImage> {
  const { host, image: given } = dockerOf(config);
  if (given !== null)
    throw new BadConfig(`BROWSER_IMAGE: ${given} is not built here; pull or build it yourself`);
  const { docker } = await connectEngine(host);
  const before = await findBrowserImage(docker, null);
  const built = await buildBrowserImage(docker, { isFresh: true, print });
  return { built, before, removed: await removeOldImages(docker) };
}

function dockerOf(config: Config): NonNullable<Config['browsers']['docker']> {
  const { docker } = config.browsers;
  if (docker === null)
    throw new BadConfig('BROWSERS: only Docker browsers have an image; set BROWSERS=docker');
  return docker;
}
