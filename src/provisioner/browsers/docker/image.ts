import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type Docker from 'dockerode';
import { answered, DockerUnavailable, messageOf, statusOf } from './engine.ts';
import { LINK, TLS_PSK } from './naming.ts';

/** An image that is built from the folder `deploy/browser` if it is missing. */
type Recipe = { repository: string; dockerfile: string; files: readonly string[]; what: string };

const FOLDER = fileURLToPath(new URL('../../../../deploy/browser/', import.meta.url));
const BROWSER: Recipe = {
  repository: 'browser-session-service/browser',
  dockerfile: 'Dockerfile',
  files: ['Dockerfile', 'entrypoint.sh', 'link.conf', 'xkb/rules/evdev', 'xkb/symbols/letters'],
  what: 'the browser image',
};
const RULES: Recipe = {
  repository: 'browser-session-service/network-rules',
  dockerfile: 'rules.Dockerfile',
  files: ['rules.Dockerfile'],
  what: 'the network rules’ image',
};

/** A slow mirror needs minutes for Chromium's 300 MB; a build that hangs must end some time. */
const BUILD_MS = 20 * 60_000;

/** The seccomp profile as JSON text: it allows Chromium's sandbox and little else. */
export function readSeccomp(): string {
  return JSON.stringify(JSON.parse(readFileSync(`${FOLDER}seccomp.json`, 'utf8')));
}

/**
 * The image of the browsers: the given one, or our own, built if this version of it is missing.
 * `print` gets a line for each step of the build.
 * @throws DockerUnavailable
 */
export async function ensureBrowserImage(
  docker: Docker,
  given: string | null,
  print: (line: string) => void,
): Promise<string> {
  if (given === null) return ensureBuilt(docker, BROWSER, print);
  const labels = await labelsOf(docker, given);
  if (labels?.[LINK] === TLS_PSK) return given;
  if (labels !== null)
    throw new DockerUnavailable(
      `BROWSER_IMAGE: ${given} has no encrypted link (the label ${LINK}=${TLS_PSK}). Build it ` +
        'again from deploy/browser, or leave the variable empty.',
    );
  throw new DockerUnavailable(
    `BROWSER_IMAGE: the engine has no image ${given}. Pull it, or leave the variable empty: ` +
      'then the image is built from deploy/browser.',
  );
}

/** The image of the browsers without building it; null if it is missing. */
export async function findBrowserImage(
  docker: Docker,
  given: string | null,
): Promise<string | null> {
  const image = given ?? `${BROWSER.repository}:${versionOf(BROWSER)}`;
  return (await isThere(docker, image)) ? image : null;
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
  const tag = `${recipe.repository}:${versionOf(recipe)}`;
  if (await isThere(docker, tag)) return tag;
  const begunAt = performance.now();
  print(`Building ${recipe.what} (first use; some minutes)…`);
  try {
    await build(docker, recipe, { tag, print });
  } catch (error) {
    throw new DockerUnavailable(
      `BROWSER_IMAGE: ${recipe.what} could not be built: ${messageOf(error).trim()}\n` +
        `  Try it by hand: docker build -t ${tag} -f ${FOLDER}${recipe.dockerfile} ${FOLDER}`,
      { cause: error },
    );
  }
  print(`Built ${recipe.what} in ${Math.round((performance.now() - begunAt) / 1000)} s.`);
  return tag;
}

/** A hash of the files: a changed recipe is another image, and running browsers keep theirs. */
function versionOf({ files }: Recipe): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(FOLDER + file));
  return hash.digest('hex').slice(0, 12);
}

async function isThere(docker: Docker, image: string): Promise<boolean> {
  return (await labelsOf(docker, image)) !== null;
}

/** Null if the engine does not have the image. */
async function labelsOf(docker: Docker, image: string): Promise<Record<string, string> | null> {
  try {
    const { Config } = await answered(docker.getImage(image).inspect());
    // The engine answers null where there are none.
    const labels: Record<string, string> | null = Config.Labels;
    return labels ?? {};
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

type Progress = { stream?: string; error?: string };

async function build(
  docker: Docker,
  { files, dockerfile, what }: Recipe,
  { tag, print }: { tag: string; print: (line: string) => void },
): Promise<void> {
  const context = { context: FOLDER, src: [...files] };
  const abortSignal = AbortSignal.timeout(BUILD_MS);
  // The classic builder: every engine has it, and BuildKit needs its own protocol.
  const output = await docker.buildImage(context, { t: tag, dockerfile, abortSignal });
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
