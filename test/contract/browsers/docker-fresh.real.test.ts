import { describe, expect, onTestFinished, test } from 'vitest';
import { openDockerBrowsers } from '#test/support/browsers/docker-browsers.fixture.ts';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';
import { bssWith } from '#test/support/clients/command-line.ts';
import {
  browserImage,
  buildImage,
  docker,
  dockerHost,
  hasDocker,
} from '#test/support/servers/docker-engine.ts';

describe.runIf(hasDocker())('an image of browsers', () => {
  test('has the version of its Chromium and the base image in its tag', async () => {
    const opened = await openDockerBrowsers();
    onTestFinished(() => opened[Symbol.asyncDispose]());
    const name = await browserImage();
    const { version, builtAt } = opened.browsers.build();
    expect(name).toMatch(/^browser-session-service\/browser:[\d.]+-[0-9a-f]{12}-[0-9a-f]{12}$/);
    expect(name).toContain(`:${version}-`);
    expect(builtAt).toBeLessThanOrEqual(Date.now());
    const { workloadId } = await opened.browsers.launch({
      workloadId: `wl_fresh_${process.pid}`,
      vncPassword: 'pass0rd1',
      screen: { width: 800, height: 600 },
    });
    const running = await opened.browsers.adopt(workloadId);
    if (running === null) throw new Error('the browser has ended');
    using cdp = await openCdp(running.cdp);
    const { product } = await cdp.send('Browser.getVersion');
    expect(product).toMatch(new RegExp(`/${version}$`));
  });

  test('that is built on ours under another name is not taken for ours', async () => {
    const name = await browserImage();
    const tag = `browser-session-service-test/derived:${process.pid}`;
    buildImage(tag, `FROM ${name}\nLABEL derived=${process.pid}`);
    onTestFinished(() => void docker('rmi', '-f', tag));
    expect(await browserImage()).toBe(name);
  });
});

describe('bss image', () => {
  test.runIf(hasDocker())('status lists the image that new browsers run from', async () => {
    const name = await browserImage();
    const env = { BROWSERS: 'docker', DOCKER_HOST: dockerHost };
    const { code, stdout } = await bssWith(env, 'image', 'status', '--json');
    expect(code).toBe(0);
    const listed = JSON.parse(stdout) as { image: string; current: boolean }[];
    expect(listed.filter(({ current }) => current)).toEqual([
      expect.objectContaining({
        image: name,
        chromium: expect.stringMatching(/^\d+(\.\d+){3}$/),
        age_days: expect.any(Number),
        containers: expect.any(Number),
      }),
    ]);
  });

  test.each(['status', 'build'])('%s is refused where browsers have no image', async (word) => {
    const { code, stderr } = await bssWith({ BROWSERS: 'process' }, 'image', word);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^bss: BROWSERS: only Docker/)]);
  });

  test('build refuses to build the operator’s image', async () => {
    const env = { BROWSERS: 'docker', BROWSER_IMAGE: 'ours/chromium:1' };
    const { code, stderr } = await bssWith(env, 'image', 'build');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^bss: BROWSER_IMAGE: ours/)]);
  });

  test('build without an engine is refused, with the variable of its address', async () => {
    const env = { BROWSERS: 'docker', DOCKER_HOST: 'unix:///nowhere/docker.sock' };
    const { code, stderr } = await bssWith(env, 'image', 'build', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({
      error: 'UNAVAILABLE',
      message: expect.stringMatching(/^DOCKER_HOST: /),
    });
  });
});
