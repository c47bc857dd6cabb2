import { describe, expect, test } from 'vitest';
import { emulationOf, presentEmulation } from '#src/roles/api/schemas/emulation.ts';
import { chromiumFlags } from '#src/browsers/chromium/flags.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { emulation } from '#src/browsers/observer/emulation.ts';
import { observedBrowsers } from '#src/browsers/observer/observed-browsers.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '#src/browsers/observer/part.ts';
import { canServe, DEFAULTS, isSame, specOf } from '#src/roles/provisioner/pool/options.ts';

const ZURICH = { latitude: 47.3769, longitude: 8.5417, accuracy: 10 };
const spec = { workloadId: 'wl_1', vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };

describe('what a request asks a browser to pretend', () => {
  test('is absent from the options where it is not asked for', () => {
    expect(emulationOf({})).toEqual({});
    expect(emulationOf({ permissions: [] })).toEqual({});
    const nothing = { geolocation: null, user_agent: null, permissions: [] };
    expect(presentEmulation(DEFAULTS)).toEqual(nothing);
  });

  test('is the same in whatever order permissions are named', () => {
    const [one, other] = [
      ['notifications', 'camera'],
      ['camera', 'notifications', 'camera'],
    ].map((permissions) => ({ ...DEFAULTS, ...emulationOf({ permissions }) }));
    expect(one?.permissions).toEqual(['camera', 'notifications']);
    expect(isSame(one ?? DEFAULTS, other ?? DEFAULTS)).toBe(true);
  });

  test.each([
    { geolocation: ZURICH },
    { user_agent: 'Robot/1.0' },
    { permissions: ['geolocation'] },
  ])('is served by a browser launched for it alone: %o', (asked) => {
    const options = { ...DEFAULTS, ...emulationOf(asked) };
    expect(canServe(DEFAULTS, options)).toBe(false);
    expect(canServe(options, DEFAULTS)).toBe(false);
    expect(canServe(options, structuredClone(options))).toBe(true);
    expect(specOf(options)).toMatchObject(emulationOf(asked));
  });

  test('is a flag where it is the user agent', () => {
    const flag = '--user-agent=Robot/1.0 (+https://a.test)';
    expect(chromiumFlags({ ...spec, userAgent: 'Robot/1.0 (+https://a.test)' })).toContain(flag);
    expect(chromiumFlags(spec).join(' ')).not.toContain('--user-agent');
  });
});

/** A browser that notes its commands; all its pages are in the context `ctx1`. */
function observe(launchedWith: ObservedBrowserConnection['launchedWith']) {
  const sent: [method: string, params: object | undefined][] = [];
  const send = (method: string, params?: object): Promise<never> => {
    sent.push([method, params]);
    return Promise.resolve({ targetInfo: { browserContextId: 'ctx1' } } as never);
  };
  const closed = new AbortController().signal;
  const shared = { workloadId: 'wl_1', on: () => undefined, closed, send };
  const browser: ObservedBrowserConnection = { ...shared, launchedWith };
  const page: ObservedTarget = {
    ...shared,
    browser,
    targetId: 'page1',
    type: 'page',
    url: 'about:blank',
    sessionId: 's1',
  };
  return { browser, page, sent };
}

test('an adopted browser gets again what its session asked for', async () => {
  const attached: unknown[] = [];
  const running = { workloadId: 'wl_1' } as RunningBrowser;
  const observer = { attach: (...given: unknown[]) => void attached.push(given) };
  const browsers = { adopt: () => Promise.resolve(running), onExit: () => undefined };
  const observed = observedBrowsers(browsers as never, observer as never);
  const launchedWith = { ...spec, geolocation: ZURICH };
  await observed.adopt('wl_1', undefined, launchedWith);
  expect(attached).toEqual([[running, launchedWith]]);
});

describe('the part of emulation', () => {
  test('does nothing in a browser whose session asked for none, and holds no page of it', async () => {
    for (const launchedWith of [null, spec, { ...spec, userAgent: 'Robot/1.0' }]) {
      const { browser, page, sent } = observe(launchedWith);
      await emulation.attached?.(browser);
      await emulation.pages?.attached(page);
      expect(sent).toEqual([]);
      expect(emulation.pages?.holds?.(browser)).toBe(false);
      expect(emulation.awaitedMs?.(launchedWith)).toBe(0);
    }
  });

  test('gives each page its place, before its first script', async () => {
    const { browser, page, sent } = observe({ ...spec, geolocation: ZURICH });
    await emulation.attached?.(browser);
    await emulation.pages?.attached(page);
    expect(sent).toEqual([['Emulation.setGeolocationOverride', ZURICH]]);
    expect(emulation.pages?.holds?.(browser)).toBe(true);
  });

  test('grants permissions in the browser’s own context, and in that of each page', async () => {
    const { browser, page, sent } = observe({ ...spec, permissions: ['camera', 'midi-sysex'] });
    const granted = { setting: 'granted' };
    await emulation.attached?.(browser);
    const midi = { name: 'midi', sysex: true };
    expect(sent).toEqual([
      ['Browser.setPermission', { permission: { name: 'camera' }, ...granted }],
      ['Browser.setPermission', { permission: midi, ...granted }],
    ]);
    sent.length = 0;
    await emulation.pages?.attached(page);
    const inContext = { ...granted, browserContextId: 'ctx1' };
    expect(sent).toEqual([
      ['Target.getTargetInfo', { targetId: 'page1' }],
      ['Browser.setPermission', { permission: { name: 'camera' }, ...inContext }],
      ['Browser.setPermission', { permission: midi, ...inContext }],
    ]);
  });
});
