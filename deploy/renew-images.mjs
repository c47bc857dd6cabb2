/**
 * Pins the images that deploy/ builds on and starts: asks the registry of each which digest its tag has
 * now, and writes `name:tag@sha256:…` wherever deploy/ names it.
 *   npm run images:renew [folder]      REGISTRY=https://mirror.example asks another host for all
 * Nothing is written unless all have answered. Commit what it changes; `git diff` shows it.
 */
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where images are named; a test sees to it that no file of deploy/ is left out. */
export const FILES = [
  'Dockerfile',
  'nginx.Dockerfile',
  'browser/Dockerfile',
  'browser/rules.Dockerfile',
  '.env',
  'compose.yaml',
  'helm/values.yaml',
];
/** How they are named: an argument of a build, a setting with its default, or a value of the chart. */
const NAMED =
  /^(ARG [A-Z_]+=|[A-Z_]+_IMAGE=|\s+image: (?:\$\{[A-Z_]+:-)?)((?:[\w.-]+(?::\d+)?\/)*[\w.-]+:[\w.-]+)(@sha256:[0-9a-f]{64})?(?=\}?$)/gm;
/** Lists of an image's platforms: a digest of one platform's image would be of no use to others. */
const LISTS = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const TIMEOUT_MS = 60_000;

/** The images that a file names, as name:tag with the digest that it has there, or null. */
export function imagesIn(text) {
  return [...text.matchAll(NAMED)].map(([, , image, pin]) => ({
    image,
    digest: pin?.slice(1) ?? null,
  }));
}

/** @throws Error naming the image, where a registry does not give its digest; nothing is written then */
export async function renew(folder, registry, print) {
  const texts = new Map(FILES.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  const images = new Set([...texts.values()].flatMap(imagesIn).map(({ image }) => image));
  const digests = new Map();
  for (const image of images) digests.set(image, await digestOf(image, registry));
  const pinned = (_, before, image) => `${before}${image}@${digests.get(image)}`;
  const files = [...texts].filter(([, text]) => text.replaceAll(NAMED, pinned) !== text);
  const fresh = (file) => join(folder, `${file}.new`);
  try {
    for (const [file, text] of files) writeFileSync(fresh(file), text.replaceAll(NAMED, pinned));
    for (const [file] of files) renameSync(fresh(file), join(folder, file));
  } finally {
    for (const [file] of files) rmSync(fresh(file), { force: true, recursive: true });
  }
  for (const [image, digest] of digests) print(`${image}@${digest}`);
}

async function digestOf(image, registry) {
  const { host, repository, tag } = partsOf(image);
  const url = `${registry ?? `https://${host}`}/v2/${repository}/manifests/${tag}`;
  try {
    const response = await authorized(url);
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    if (!LISTS.includes(type)) throw new Error(`${url} is no list of platforms, but ${type}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    const said = response.headers.get('docker-content-digest');
    if (said !== null && said !== digest)
      throw new Error(`${url} is said to be ${said}, and is ${digest}`);
    return digest;
  } catch (error) {
    throw new Error(`${image}: ${error.cause?.message ?? error.message}`, { cause: error });
  }
}

/** A registry names the server that gives a token, to strangers too. */
async function authorized(url) {
  const headers = { accept: LISTS.join(', ') };
  const first = await ask(url, headers);
  const challenge = first.headers.get('www-authenticate') ?? '';
  if (first.status !== 401 || !/^Bearer /i.test(challenge)) return first;
  const given = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map((m) => m.slice(1)),
  );
  const from = new URL(given.realm);
  for (const name of ['service', 'scope'])
    if (given[name]) from.searchParams.set(name, given[name]);
  const answer = await ask(from, {});
  if (!answer.ok) throw new Error(`${from.host} gave no token: ${answer.status}`);
  const { token, access_token: other } = await answer.json();
  return await ask(url, { ...headers, authorization: `Bearer ${token ?? other}` });
}

async function ask(url, headers) {
  return await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
}

/** A name without a host is of Docker Hub, and without a folder one of its own images. */
function partsOf(image) {
  const at = image.lastIndexOf(':');
  const [first, ...rest] = image.slice(0, at).split('/');
  const tag = image.slice(at + 1);
  if (rest.length > 0 && /[.:]|^localhost$/.test(first))
    return { host: first, repository: rest.join('/'), tag };
  const name = [first, ...rest].join('/');
  return {
    host: 'registry-1.docker.io',
    repository: rest.length === 0 ? `library/${name}` : name,
    tag,
  };
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? fileURLToPath(new URL('.', import.meta.url));
  await renew(folder, process.env.REGISTRY, console.log).catch((error) => {
    console.error(`images:renew: ${error.message}`);
    process.exitCode = 1;
  });
}
