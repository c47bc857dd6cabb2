import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import { parseVersion } from '../chromium/program-version.ts';
import { runContainer } from './container.ts';
import { answered, bounded, DockerUnavailable, messageOf, statusOf } from './engine.ts';
import { BROWSER, build, FOLDER, hashOf, LABELS, timed } from './image.ts';
import { EGRESS, KEYS, LINK, ownLabel, RELAY, STDIN, TLS_PSK } from './naming.ts';

/** An image of the browsers. */
export type BrowserImage = {
  /** The engine's own id, `sha256:…`. */
  id: string;
  /** What containers are created from: its tag, or its id if a newer image has taken its tag. */
  name: string;
  /** Chromium's version; `unknown` if the image has none that tells it. */
  version: string;
  /** 12 digits of the base image's digest, or of its id; null for an image of the operator's. */
  base: string | null;
  /** When its packages were installed, milliseconds since the epoch. */
  builtAt: number;
  /** When the image itself was made, milliseconds since the epoch. */
  createdAt: number;
  /** Hash of the files it was built from; null for an image of the operator's. */
  recipe: string | null;
  /** Whether its browsers read their keys, and are reached through TLS; no others are started. */
  isLinked: boolean;
  /** Whether its browsers may have egress rules: they reach their proxy by a relay in the image. */
  hasRelay: boolean;
};

const OWNER = 'browser-session-service';
/** Labels of a browser image. */
export const RECIPE = `${OWNER}.recipe`;
export const CHROMIUM = `${OWNER}.chromium`;
export const BUILT_AT = `${OWNER}.built-at`;
const BASE = `${OWNER}.base`;

const TEMPORARY = `${BROWSER.repository}:building-`;
const UNKNOWN = 'unknown';
const DIGITS = 12;
/** Chromium's `--version` takes 100 ms. */
const VERSION_MS = 30_000;
/** A base image has 30 MB; a slow registry is given up after this, and the engine's is used. */
const PULL_MS = 5 * 60_000;

export type Print = (line: string) => void;

/** The hash of the present recipe. */
export function presentRecipe(): string {
  return hashOf(BROWSER);
}

/** `…/browser:<Chromium's version>-<base>-<recipe>`. */
export function tagOf(image: { version: string; base: string; recipe: string }): string {
  return `${BROWSER.repository}:${image.version}-${image.base}-${image.recipe}`;
}

/** The tag of an image that is being built. */
export function temporaryTag(now: number): string {
  return `${TEMPORARY}${now}-${randomBytes(6).toString('hex')}`;
}

/** When the build of a temporary tag began; null for any other tag. */
export function temporarySince(tag: string): number | null {
  if (!tag.startsWith(TEMPORARY)) return null;
  return Number(/^\d+/.exec(tag.slice(TEMPORARY.length))?.[0] ?? Number.NaN);
}

/** The image that was made last, of those with a tag; null if there is none. */
export function newestOf(images: readonly BrowserImage[]): BrowserImage | null {
  const tagged = images.filter(({ id, name }) => name !== id);
  const [newest = null] = tagged.toSorted((one, other) => other.createdAt - one.createdAt);
  return newest;
}

/**
 * The image of the browsers: the given one, or the newest of our recipe, built if there is none.
 * `print` gets a line for each step of the build.
 * @throws DockerUnavailable
 */
export async function openBrowserImage(
  docker: Docker,
  given: string | null,
  print: Print,
): Promise<BrowserImage> {
  if (given !== null) {
    const image = await inspectImage(docker, given);
    if (image !== null) return withVersion(docker, linked(image));
    throw new DockerUnavailable(
      `BROWSER_IMAGE: the engine has no image ${given}. Pull it, or leave the variable empty: ` +
        'then the image is built from deploy/browser.',
    );
  }
  const newest = newestOf(await listBrowserImages(docker, presentRecipe()));
  return newest ?? (await buildBrowserImage(docker, { isFresh: false, print }));
}

/** @throws DockerUnavailable for an image that gets no keys, or whose browsers have no TLS */
export function linked(image: BrowserImage): BrowserImage {
  if (image.isLinked) return image;
  throw new DockerUnavailable(
    `BROWSER_IMAGE: ${image.name} has no encrypted link, or takes its keys otherwise (the labels ` +
      `${LINK}=${TLS_PSK} and ${KEYS}=${STDIN}). Build it again from deploy/browser, or leave ` +
      'the variable empty.',
  );
}

/** The name of the image of the browsers. @throws DockerUnavailable */
export async function ensureBrowserImage(
  docker: Docker,
  given: string | null,
  print: Print,
): Promise<string> {
  return (await openBrowserImage(docker, given, print)).name;
}

/** The image of the browsers without building it; null if it is missing. */
export async function findBrowserImage(
  docker: Docker,
  given: string | null,
): Promise<BrowserImage | null> {
  return given === null
    ? newestOf(await listBrowserImages(docker, presentRecipe()))
    : readImage(docker, given);
}

/** The browser images that were built here, of one recipe or of all (null). */
export async function listBrowserImages(
  docker: Docker,
  recipe: string | null,
): Promise<BrowserImage[]> {
  const owner = Object.entries(ownLabel()).map(([name, value]) => `${name}=${value}`);
  const label = [...owner, recipe === null ? RECIPE : `${RECIPE}=${recipe}`];
  const filters = JSON.stringify({ label });
  const infos = await docker.listImages({ filters, ...bounded() });
  return infos.flatMap(({ Id, RepoTags, Labels, Created }) => {
    const createdAt = Created * 1000;
    // An image that has lost its tag is listed with <none>.
    const tags = ((RepoTags as string[] | null) ?? []).filter((one) => !one.startsWith('<none>'));
    const own = tags.find((tag) => tag.startsWith(`${BROWSER.repository}:`));
    // An image that somebody has built on ours has our labels too.
    if (own === undefined && tags.length > 0) return [];
    return [{ id: Id, name: own ?? Id, createdAt, ...labelled(Labels, createdAt) }];
  });
}

/** An image by its name; null if the engine does not have it. */
async function readImage(docker: Docker, name: string): Promise<BrowserImage | null> {
  const image = await inspectImage(docker, name);
  return image === null ? null : withVersion(docker, image);
}

/** An image as its labels describe it; null if the engine does not have it. */
export async function inspectImage(docker: Docker, name: string): Promise<BrowserImage | null> {
  const found = await inspect(docker, name);
  if (found === null) return null;
  const createdAt = Date.parse(found.Created);
  const labels = (found.Config.Labels as Record<string, string> | null) ?? {};
  return { id: found.Id, name, createdAt, ...labelled(labels, createdAt) };
}

/** An image with its version, which a container tells where no label does. */
export async function withVersion(docker: Docker, image: BrowserImage): Promise<BrowserImage> {
  if (image.version !== UNKNOWN) return image;
  return { ...image, version: (await readVersion(docker, image.id)) ?? UNKNOWN };
}

async function inspect(docker: Docker, name: string): Promise<Docker.ImageInspectInfo | null> {
  try {
    return await answered(docker.getImage(name).inspect());
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

function labelled(labels: Record<string, string> | null, createdAt: number) {
  const builtAt = Date.parse(labels?.[BUILT_AT] ?? '');
  return {
    version: labels?.[CHROMIUM] ?? UNKNOWN,
    base: labels?.[BASE] ?? null,
    builtAt: Number.isNaN(builtAt) ? createdAt : builtAt,
    recipe: labels?.[RECIPE] ?? null,
    isLinked: labels?.[LINK] === TLS_PSK && labels[KEYS] === STDIN,
    hasRelay: labels?.[EGRESS] === RELAY,
  };
}

/** Runs Chromium's `--version` in the image, without a network. */
async function readVersion(docker: Docker, image: string): Promise<string | null> {
  // /usr/bin/chromium is a script, which another image may have instead.
  const script = '/usr/lib/chromium/chromium --version || chromium --version';
  const options: Docker.ContainerCreateOptions = {
    Image: image,
    Labels: ownLabel(),
    User: '1000:1000',
    Entrypoint: ['sh', '-c', script],
    Cmd: [],
    HostConfig: {
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      PidsLimit: 64,
    },
  };
  const { lines } = await runContainer(docker, options, VERSION_MS).catch(() => ({ lines: [] }));
  return parseVersion(lines.join('\n'));
}

export type BrowserBuildOptions = {
  /** Pulls the base image anew, and installs all packages again. */
  isFresh: boolean;
  print: Print;
  /** Gives the build few of the cores. */
  isLowPriority?: boolean;
  signal?: AbortSignal;
};

/** Builds the image of the present recipe. @throws DockerUnavailable */
export function buildBrowserImage(
  docker: Docker,
  options: BrowserBuildOptions,
): Promise<BrowserImage> {
  return timed(BROWSER, options.print, () => buildAndLabel(docker, options));
}

/** Its tag is known only when it runs: it is built under a temporary one. */
async function buildAndLabel(
  docker: Docker,
  { isFresh, ...common }: BrowserBuildOptions,
): Promise<BrowserImage> {
  const base = await findBase(docker, isFresh, common.print);
  const temporary = temporaryTag(Date.now());
  try {
    const buildargs = { BASE: base.id };
    await build(docker, BROWSER, { ...common, tag: temporary, buildargs, nocache: isFresh });
    const version = await readVersion(docker, temporary);
    if (version === null) throw new Error('Chromium does not run in the image that was built');
    const recipe = presentRecipe();
    const builtAt = await packagesInstalledAt(docker, temporary);
    const labels = {
      ...ownLabel(),
      [RECIPE]: recipe,
      [CHROMIUM]: version,
      [BASE]: base.digest,
      [BUILT_AT]: new Date(builtAt).toISOString(),
    };
    const tag = tagOf({ version, base: base.digest, recipe });
    await build(docker, LABELS, { ...common, tag, buildargs: { IMAGE: temporary }, labels });
    const built = await readImage(docker, tag);
    if (built === null) throw new Error(`the image ${tag} has disappeared`);
    return built;
  } finally {
    await docker
      .getImage(temporary)
      .remove(bounded())
      .catch(() => undefined);
  }
}

/**
 * The base image: pulled where that is asked for or needed, and possible. One that the recipe names
 * by its digest is the same for ever; a fresh build brings the newest packages onto it.
 */
async function findBase(
  docker: Docker,
  isFresh: boolean,
  print: Print,
): Promise<{ id: string; digest: string }> {
  const name = baseName();
  const present = await inspect(docker, name);
  const isPinned = name.includes('@sha256:');
  if (present === null || (isFresh && !isPinned))
    try {
      await pull(docker, name);
    } catch (error) {
      if (present === null) throw error;
      const why = messageOf(error).trim();
      print(`The base image ${name} is the engine's own, since it cannot be pulled: ${why}`);
    }
  const found = (await inspect(docker, name)) ?? present;
  if (found === null) throw new Error(`the engine has no image ${name}`);
  const digest = (found.RepoDigests as string[] | null)?.[0]?.split('@')[1] ?? found.Id;
  return { id: found.Id, digest: digest.replace('sha256:', '').slice(0, DIGITS) };
}

/** The recipe's base image by default. */
function baseName(): string {
  const text = readFileSync(FOLDER + BROWSER.dockerfile, 'utf8');
  const name = /^ARG BASE=(\S+)$/m.exec(text)?.[1];
  if (name === undefined) throw new Error('deploy/browser/Dockerfile names no base image');
  return name;
}

async function pull(docker: Docker, name: string): Promise<void> {
  const output = await docker.pull(name, { abortSignal: AbortSignal.timeout(PULL_MS) });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  docker.modem.followProgress(output, (error: Error | null) =>
    error === null ? resolve() : reject(error),
  );
  await promise;
}

/**
 * When the image's packages were installed: a build may use a layer that an earlier one has left,
 * and such packages are as old as that layer.
 */
async function packagesInstalledAt(docker: Docker, image: string): Promise<number> {
  const history = (await answered(docker.getImage(image).history())) as Layer[];
  const layer = history.find(({ CreatedBy }) => CreatedBy.includes('apt-get install'));
  return layer === undefined ? Date.now() : layer.Created * 1000;
}

type Layer = { Created: number; CreatedBy: string };
