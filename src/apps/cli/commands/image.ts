import type { BuiltImage, ListedImage } from '#src/start/operator/browser-image.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Command, Output } from '../command.ts';
import { formatTable } from '../output.ts';

export const showImages: Command = {
  readAlone: () => () => orRefuse(status),
  read: needsNoService,
};

export const buildImageCommand: Command = {
  readAlone: () => () => orRefuse(build),
  read: needsNoService,
};

function needsNoService(): never {
  throw new Error('the images need no service');
}

/** Refuses where the engine cannot do what is asked. */
async function orRefuse(work: () => Promise<Output>): Promise<Output | Rejection> {
  try {
    return await work();
  } catch (error) {
    const { DockerUnavailable } = await import('#src/start/operator/browser-image.ts');
    if (!(error instanceof DockerUnavailable)) throw error;
    return reject('UNAVAILABLE', {}, { message: error.message });
  }
}

async function status(): Promise<Output> {
  // Imported here only: the Docker client would double the start time of every command.
  const { listImages } = await import('#src/start/operator/browser-image.ts');
  const now = Date.now();
  const images = await listImages(readConfig(process.env));
  const heads = ['IMAGE', 'CHROMIUM', 'BASE', 'BUILT AT', 'DAYS', 'CONTAINERS', 'NEW BROWSERS'];
  const rows = images.map((image) => {
    const { image: name, chromium, base, built_at, age_days, containers } = present(image, now);
    const use = image.isCurrent ? 'run from it' : '';
    return [name, chromium, base ?? '–', built_at, `${age_days}`, `${containers}`, use];
  });
  const text = images.length === 0 ? ['no image is built yet'] : formatTable(heads, rows);
  return { json: images.map((image) => present(image, now)), text: text.join('\n') };
}

const DAY_MS = 86_400_000;

function present(image: ListedImage, now: number) {
  const { name, id, version, base, recipe, builtAt, containers, isCurrent } = image;
  return {
    image: name,
    id,
    chromium: version,
    base,
    recipe,
    built_at: new Date(builtAt).toISOString(),
    age_days: Math.max(0, Math.floor((now - builtAt) / DAY_MS)),
    containers,
    current: isCurrent,
  };
}

/** Steps go to stderr: the result alone is on stdout. */
function printStep(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function build(): Promise<Output> {
  const { buildImage } = await import('#src/start/operator/browser-image.ts');
  const result = await buildImage(readConfig(process.env), printStep);
  const { built, before, removed } = result;
  const json = {
    image: built.name,
    id: built.id,
    chromium: built.version,
    base: built.base,
    built_at: timeOf(built),
    before: before && {
      image: before.name,
      chromium: before.version,
      base: before.base,
      built_at: timeOf(before),
    },
    removed,
  };
  return { json, text: describe(result) };
}

function describe({ built, before, removed }: BuiltImage): string {
  return [
    `image ${built.name}`,
    ...(before === null
      ? [`Chromium ${built.version}; there was no image before`]
      : [
          change('Chromium', before.version, built.version),
          change('the base image', before.base, built.base),
          `its packages were installed at ${timeOf(built)}, before at ${timeOf(before)}`,
        ]),
    ...removed.map((name) => `removed ${name}`),
    'running servers use it within a minute and replace their idle browsers; sessions go on',
  ].join('\n');
}

function timeOf({ builtAt }: BuiltImage['built']): string {
  return new Date(builtAt).toISOString();
}

function change(what: string, was: string | null, is: string | null): string {
  return was === is ? `${what} is still ${is}` : `${what} was ${was ?? 'unknown'}, is ${is}`;
}
