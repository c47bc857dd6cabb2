import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type Docker from 'dockerode';
import { answered, DockerUnavailable, messageOf, statusOf } from './engine.ts';

/** An image that is built from the folder `deploy/browser`. */
export type Recipe = {
  repository: string;
  dockerfile: string;
  files: readonly string[];
  what: string;
};

export const FOLDER = fileURLToPath(new URL('../../../deploy/browser/', import.meta.url));
export const BROWSER: Recipe = {
  repository: 'browser-session-service/browser',
  dockerfile: 'Dockerfile',
  files: [
    'Dockerfile',
    'entrypoint.sh',
    'link.conf',
    'egress.conf',
    'preferences.sh',
    'relay.pl',
    'webdriver.pl',
    'xkb/rules/evdev',
    'xkb/symbols/letters',
  ],
  what: 'the browser image',
};
/** Adds labels to an image. */
export const LABELS: Recipe = {
  ...BROWSER,
  dockerfile: 'labels.Dockerfile',
  files: ['labels.Dockerfile'],
  what: 'the browser image’s labels',
};
const RULES: Recipe = {
  repository: 'browser-session-service/network-rules',
  dockerfile: 'rules.Dockerfile',
  files: ['rules.Dockerfile'],
  what: 'the network rules’ image',
};

/** A slow mirror needs minutes for Chromium's 300 MB; a build that hangs must end some time. */
const BUILD_MS = 20 * 60_000;
/** A build beside running browsers: a tenth of a container's usual share of the cores. */
const LOW_CPU_SHARES = 102;

/** The seccomp profile as JSON text: it allows Chromium's sandbox and little else. */
export function readSeccomp(): string {
  return JSON.stringify(JSON.parse(readFileSync(`${FOLDER}seccomp.json`, 'utf8')));
}

/** The image of the one-shot container that sets packet rules. @throws DockerUnavailable */
export function ensureRulesImage(docker: Docker, print: (line: string) => void): Promise<string> {
  return ensureBuilt(docker, RULES, print);
}

async function ensureBuilt(
  docker: Docker,
  recipe: Recipe,
  print: (line: string) => void,
): Promise<string> {
  const tag = `${recipe.repository}:${hashOf(recipe)}`;
  if (await isThere(docker, tag)) return tag;
  await timed(recipe, print, () => build(docker, recipe, { tag, print }));
  return tag;
}

/** Prints the beginning and the duration of a build. @throws DockerUnavailable if it fails */
export async function timed<Built>(
  { what, dockerfile }: Recipe,
  print: (line: string) => void,
  work: () => Promise<Built>,
): Promise<Built> {
  const begunAt = performance.now();
  print(`Building ${what} (some minutes)…`);
  try {
    const built = await work();
    print(`Built ${what} in ${Math.round((performance.now() - begunAt) / 1000)} s.`);
    return built;
  } catch (error) {
    throw new DockerUnavailable(
      `BROWSER_IMAGE: ${what} could not be built: ${messageOf(error).trim()}\n` +
        `  Try it by hand: docker build -f ${FOLDER}${dockerfile} ${FOLDER}`,
      { cause: error },
    );
  }
}

/** A hash of the files: a changed recipe is another image, and running browsers keep theirs. */
export function hashOf({ files }: Recipe): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(FOLDER + file));
  return hash.digest('hex').slice(0, 12);
}

async function isThere(docker: Docker, image: string): Promise<boolean> {
  try {
    await answered(docker.getImage(image).inspect());
    return true;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw error;
  }
}

type Progress = { stream?: string; error?: string };

export type BuildOptions = {
  tag: string;
  print: (line: string) => void;
  /** Values of the recipe's `ARG`s. */
  buildargs?: Record<string, string>;
  labels?: Record<string, string>;
  /** Uses nothing that earlier builds have left. */
  nocache?: boolean;
  /** Gives it few of the cores. */
  isLowPriority?: boolean;
  signal?: AbortSignal | undefined;
};

/** Builds a recipe with the engine; at most 20 minutes. @throws Error with its last output */
export async function build(
  docker: Docker,
  { files, dockerfile, what }: Recipe,
  { tag, print, signal, isLowPriority = false, ...given }: BuildOptions,
): Promise<void> {
  const context = { context: FOLDER, src: [...files] };
  const late = AbortSignal.timeout(BUILD_MS);
  const abortSignal = signal === undefined ? late : AbortSignal.any([late, signal]);
  const share = isLowPriority ? { cpushares: LOW_CPU_SHARES } : {};
  // The classic builder: every engine has it, and BuildKit needs its own protocol.
  const options = { ...given, ...share, t: tag, dockerfile, abortSignal };
  const output = await docker.buildImage(context, options);
  let last = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  docker.modem.followProgress(
    output,
    (error: Error | null) => (error === null ? resolve() : reject(error)),
    ({ stream, error }: Progress) => {
      const step = /^Step (\d+)\/(\d+)/.exec(stream ?? '');
      if (step !== null) print(`  ${what}: step ${step[1]} of ${step[2]}`);
      if (error !== undefined) reject(new Error(`${error}\n${last}`));
      if (stream?.trim()) last = stream.trim().slice(-500);
    },
  );
  await promise;
}
