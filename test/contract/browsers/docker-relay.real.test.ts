import { describe, expect, onTestFinished, test } from 'vitest';
import { openBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { createCurrentImage } from '#src/browsers/docker/current-image.ts';
import { browsersAt } from '#src/browsers/docker/docker-browsers.ts';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import {
  containersOf,
  dockerOptions,
  siteFor,
} from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  browserImage,
  buildImage,
  docker,
  hasDocker,
} from '#test/support/servers/docker-engine.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';

const SPEC = { vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 }, headless: true };
const TAG = `browser-session-service-test/relay:${process.pid}`;

/** An operator's image on ours, with the label of the relay or without; returns its tag. */
async function derive(label: 'relay' | ''): Promise<string> {
  const tag = `${TAG}-${label || 'none'}`;
  const lines = [`FROM ${await browserImage()}`, `LABEL browser-session-service.egress="${label}"`];
  buildImage(tag, lines.join('\n'));
  onTestFinished(() => void docker('rmi', '-f', tag));
  return tag;
}

describe.runIf(hasDocker())('an image without a relay', () => {
  test('launches no browser with egress rules, and its server tells that', async () => {
    const [without, withRelay] = [await derive(''), await derive('relay')];
    docker('tag', without, TAG);
    onTestFinished(() => void docker('rmi', '-f', TAG));
    const options = dockerOptions();
    const site = await siteFor(options);
    const first = await openBrowserImage(site.docker, TAG, () => {});
    const image = createCurrentImage({ docker: site.docker, first, given: TAG });
    await using browsers = await browsersAt({ ...site, image }, options);
    expect(browsers.egress).toBeUndefined();
    await using proxy = await createOpenEgress()({ deny: [] }, 'ses_1');
    const launch = browsers.launch({ ...SPEC, workloadId: 'wl_held', egress: proxy });
    await expect(launch).rejects.toThrow(/^EGRESS_UNAVAILABLE: the image .* has no relay/);
    expect(containersOf(options.serverId)).toEqual([]);

    await using fleet = await openFleet();
    const limits = { minIdle: 0, max: 1 };
    await using server = await fleet.join({ browsers, limits });
    const told = async () => (await fleet.serverOf(server.id))?.egress;
    expect(await told()).toBeUndefined();
    docker('tag', withRelay, TAG);
    await image.look();
    await eventually(async () => (await told()) === 'network', 'the server tells that it can');
    docker('tag', without, TAG);
    await image.look();
    await eventually(async () => (await told()) === undefined, 'the server tells that it cannot');
  });
});

test.runIf(hasDocker())('the image of the service has a relay', async () => {
  const { image } = await siteFor(dockerOptions());
  expect(image.now().hasRelay).toBe(true);
});
