import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FILES, imagesIn, renew } from '../../../deploy/renew-images.mjs';
import { scratchDir } from '#test/support/scratch.ts';
import { textFiles } from '#test/support/sources/source-files.ts';

const DEPLOY = fileURLToPath(new URL('../../../deploy', import.meta.url));
const IMAGES = ['debian:bookworm-slim', 'nats:2.15.1', 'node:24-bookworm-slim'];
const LIST = 'application/vnd.oci.image.index.v1+json';

describe('npm run images:renew', () => {
  it('writes the digest of each tag wherever deploy/ names it, and renews it', async () => {
    await using place = await copyOfDeploy();
    await using registry = await startRegistry();
    const said: string[] = [];
    await renew(place.path, registry.url, (line) => said.push(line));
    const named = await place.images();
    expect(new Set(named.map(({ image }) => image))).toEqual(
      new Set([...IMAGES, 'redis:7.4-bookworm']),
    );
    for (const { image, digest } of named) expect(digest).toBe(registry.digestOf(image));
    expect(said.toSorted()).toEqual(
      [...new Set(named.map(({ image, digest }) => `${image}@${digest}`))].toSorted(),
    );
    expect(await readFile(join(place.path, 'Dockerfile'), 'utf8')).toContain(
      `ARG NODE_IMAGE=node:24-bookworm-slim@${registry.digestOf('node:24-bookworm-slim')}\nFROM`,
    );
    // A tag that has moved on.
    registry.change();
    await renew(place.path, registry.url, () => undefined);
    for (const { image, digest } of await place.images())
      expect(digest).toBe(registry.digestOf(image));
  });

  it.each([
    ['does not know an image', 'missing', 'nats:2.15.1: http'],
    ['says another digest than that of its answer', 'lying', 'is said to be sha256:'],
    ['gives the image of one platform', 'one-platform', 'is no list of platforms'],
  ] as const)('changes nothing where a registry %s', async (_, fault, message) => {
    await using place = await copyOfDeploy();
    await using registry = await startRegistry(fault);
    const before = await place.texts();
    await expect(renew(place.path, registry.url, () => undefined)).rejects.toThrow(message);
    expect(await place.texts()).toEqual(before);
  });

  it('changes nothing where a file cannot be written', async () => {
    await using place = await copyOfDeploy();
    await using registry = await startRegistry();
    const before = await place.texts();
    // The last one: others were written before.
    await mkdir(join(place.path, `${FILES.at(-1)}.new`, 'kept'), { recursive: true });
    await expect(renew(place.path, registry.url, () => undefined)).rejects.toThrow('EISDIR');
    expect(await place.texts()).toEqual(before);
  });
});

it('every image that deploy/ builds on or starts is one that images:renew pins', () => {
  const files = textFiles().filter(
    ({ path }) => path.startsWith('deploy/') && !path.startsWith('deploy/helm/examples/'),
  );
  const named = files.flatMap(({ path, text }) =>
    [...text.matchAll(/^FROM (\S+)|^\s+image: ['"]?([^\s'"]+)/gm)].map(([, from, image]) => ({
      path: path.replace('deploy/', ''),
      image: from ?? image ?? '',
    })),
  );
  expect(named.length).toBeGreaterThan(8);
  // An argument, the chart's own values, or the service's own image, has no tag of others.
  const pinned = new Set(
    files
      .filter(({ path }) => FILES.includes(path.replace('deploy/', '')))
      .flatMap(({ text }) => imagesIn(text).map(({ image }) => image)),
  );
  const others = named.filter(({ image }) => /^[\w./-]+(?::[\w.-]+)?(?:@|$)/.test(image));
  expect(others.filter(({ image }) => !pinned.has(image.replace(/@.*/, '')))).toEqual([]);
});

async function copyOfDeploy() {
  const dir = await scratchDir();
  for (const file of FILES) await cp(join(DEPLOY, file), join(dir.path, file));
  const texts = () => Promise.all(FILES.map((file) => readFile(join(dir.path, file), 'utf8')));
  return {
    path: dir.path,
    texts,
    images: async () => (await texts()).flatMap(imagesIn),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

/** A registry with one list of platforms for each tag, for callers with its token. */
async function startRegistry(fault: 'missing' | 'lying' | 'one-platform' | 'none' = 'none') {
  let generation = 1;
  const bodyOf = (repository: string, tag: string) =>
    JSON.stringify({ schemaVersion: 2, mediaType: LIST, of: `${repository}:${tag}`, generation });
  const digest = (body: string) => `sha256:${createHash('sha256').update(body).digest('hex')}`;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://registry');
    if (pathname === '/token')
      return response.end(JSON.stringify({ token: `for ${searchParams.get('scope')}` }));
    const [, repository = '', tag = ''] = /^\/v2\/(.+)\/manifests\/(.+)$/.exec(pathname) ?? [];
    const scope = `repository:${repository}:pull`;
    if (request.headers.authorization !== `Bearer for ${scope}`) {
      const { port } = server.address() as AddressInfo;
      const realm = `http://127.0.0.1:${port}/token`;
      const challenge = `Bearer realm="${realm}",service="a registry",scope="${scope}"`;
      return response.writeHead(401, { 'www-authenticate': challenge }).end();
    }
    if (fault === 'missing' && repository === 'library/nats') return response.writeHead(404).end();
    const body = bodyOf(repository, tag);
    const said = fault === 'lying' ? digest(`${body} `) : digest(body);
    const type = fault === 'one-platform' ? 'application/vnd.oci.image.manifest.v1+json' : LIST;
    return response
      .writeHead(200, { 'content-type': type, 'docker-content-digest': said })
      .end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    change: () => (generation += 1),
    digestOf: (image: string) => {
      const [name = '', tag = ''] = image.split(':');
      return digest(bodyOf(`library/${name}`, tag));
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
