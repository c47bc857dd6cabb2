import { describe, expect, onTestFinished, test } from 'vitest';
import {
  BUILT_AT,
  CHROMIUM,
  listBrowserImages,
  newestOf,
  openBrowserImage,
  RECIPE,
  type BrowserImage,
} from '#src/browsers/docker/browser-image.ts';
import { createCurrentImage } from '#src/browsers/docker/current-image.ts';
import { browsersAt } from '#src/browsers/docker/docker-browsers.ts';
import {
  containersOf,
  dockerOptions,
  siteFor,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import {
  browserImage,
  buildImage,
  docker,
  hasDocker,
} from '#test/support/servers/docker-engine.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';

/** A recipe of this test alone: other tests must not run from its images. */
const RECIPE_OF_TEST = `test-${process.pid}`;

/** An image that is ours but for its labels; returns its tag. */
async function deriveImage(version: string): Promise<string> {
  const tag = `browser-session-service/browser:fresh-test-${process.pid}-${version}`;
  const labels = { [RECIPE]: RECIPE_OF_TEST, [CHROMIUM]: version, [BUILT_AT]: new Date().toJSON() };
  const label = Object.entries(labels).map(([name, value]) => `LABEL ${name}="${value}"`);
  buildImage(tag, [`FROM ${await browserImage()}`, ...label].join('\n'));
  onTestFinished(() => void docker('rmi', '-f', tag));
  return tag;
}

/** Counts the containers of this test's recipe that have been started since. */
function containersRun(): () => number {
  const seconds = () => (Date.now() / 1000).toFixed(3);
  const since = seconds();
  const only = ['event=start', `label=${RECIPE}=${RECIPE_OF_TEST}`];
  const filters = only.flatMap((one) => ['--filter', one]);
  return () => {
    const times = ['--since', since, '--until', seconds()];
    return docker('events', ...times, ...filters)
      .split('\n')
      .filter(Boolean).length;
  };
}

/** Real browsers whose image is the newest of this test's recipe. */
async function openBrowsers() {
  const options = dockerOptions();
  const site = await siteFor(options);
  const newest = async () => newestOf(await listBrowserImages(site.docker, RECIPE_OF_TEST));
  const first = await newest();
  if (first === null) throw new Error('the test has no image');
  const given = { first, given: null, recipe: RECIPE_OF_TEST };
  const image = createCurrentImage({ docker: site.docker, ...given });
  const confinement = { ...site.confinement, image: first.name };
  const browsers = await browsersAt({ ...site, confinement, image }, options);
  onTestFinished(async () => {
    await browsers[Symbol.asyncDispose]();
    const left = containersOf(options.serverId);
    if (left.length > 0) docker('rm', '-fv', ...left);
  });
  const imageOf = (workloadId: string) =>
    docker('inspect', '--format', '{{.Image}}', ...containersOf(options.serverId, workloadId));
  /** As the next process finds them. */
  const openAgain = () => browsersAt({ ...site, confinement, image }, options);
  return { browsers, openAgain, image, imageOf, serverId: options.serverId };
}

describe.runIf(hasDocker())('an image of browsers', () => {
  test('of an operator tells its version in a container once, not at each look', async () => {
    const given = await deriveImage('unknown');
    const { docker: asked } = await siteFor(dockerOptions());
    const first = await openBrowserImage(asked, given, () => {});
    expect(first.version).toMatch(/^\d+(\.\d+){3}$/);
    const image = createCurrentImage({ docker: asked, first, given });
    const changes: BrowserImage[] = [];
    image.onChange((changed) => changes.push(changed));
    const run = containersRun();
    await image.look();
    expect([run(), changes]).toEqual([0, []]);
    // The tag's next image, as after a pull; the first one loses its tag.
    onTestFinished(() => void docker('rmi', '-f', first.id));
    await deriveImage('unknown');
    await image.look();
    expect(changes).toEqual([expect.objectContaining({ name: given, version: first.version })]);
    expect(image.now().id).not.toBe(first.id);
    await image.look();
    expect(run()).toBe(1);
  });

  test('that is newer serves new browsers; idle ones are replaced and a session goes on', async () => {
    await deriveImage('150.0.0.1');
    const { browsers, openAgain, image, imageOf, serverId } = await openBrowsers();
    await using fleet = await openFleet();
    const limits = { minIdle: 1, maxIdle: 1, max: 4, launchesAtOnce: 1 };
    await using server = await fleet.join({ id: serverId, browsers, limits });
    const ofServer = async () => (await fleet.workloads()).filter((w) => w.serverId === server.id);
    const idle = () =>
      eventually(async () => {
        const own = await ofServer();
        const found = own.find(({ status }) => status === 'idle');
        const isSettled = own.length === 2 && own.some(({ status }) => status === 'busy');
        return isSettled && found !== undefined && found.id;
      }, 'one browser is busy and one is idle');

    const id = await fleet.create();
    const { workload } = await fleet.waitForStatus(id, 'active');
    const busy = await browsers.adopt(workload?.workloadId ?? '');
    if (busy === null) throw new Error('the session has no browser');
    using cdp = await openCdp(busy.cdp);
    const page = await attachPage(cdp);
    await evaluate(cdp, page, 'window.before = "the newer image"');
    const old = await idle();
    const before = image.now();
    expect(imageOf(old)).toBe(before.id);

    const after = await renew(image, '151.0.0.1');
    const readyLeft: number[] = [];
    const replaced = await eventually(async () => {
      const own = (await ofServer()).filter(({ status }) => status === 'idle');
      readyLeft.push(own.length);
      return own.every((one) => one.id !== old) && (await idle());
    }, 'the idle browser is another one');
    expect(imageOf(replaced)).toBe(after.id);
    expect(Math.min(...readyLeft)).toBeGreaterThanOrEqual(limits.minIdle);
    expect(browsers.isOutdated(replaced)).toBe(false);
    expect(await fleet.serverOf(server.id)).toMatchObject({ browser: { version: '151.0.0.1' } });

    // The session still has its browser, with what it has done in it.
    expect(await fleet.read(id)).toMatchObject({ status: 'active', workload });
    expect(await evaluate(cdp, page, 'window.before')).toBe('the newer image');
    expect(imageOf(busy.workloadId)).toBe(before.id);

    // The next process knows which browsers are outdated.
    const again = await openAgain();
    for (const workloadId of [busy.workloadId, replaced]) await again.adopt(workloadId);
    const outdated = [busy.workloadId, replaced].map((one) => again.isOutdated(one));
    await again.leave();
    expect(outdated).toEqual([true, false]);
  });
});

/** Makes a newer image and lets the server look for it. */
async function renew(
  image: ReturnType<typeof createCurrentImage>,
  version: string,
): Promise<BrowserImage> {
  const { id } = image.now();
  // The engine tells the time of an image in seconds.
  await deriveImage(version);
  await eventually(async () => {
    await image.look();
    return image.now().id !== id;
  }, 'the newer image is found');
  return image.now();
}
