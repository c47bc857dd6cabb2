import { expect, test } from 'vitest';
import { chromiumFlags } from '#src/browsers/chromium/flags.ts';

const spec = { workloadId: 'wl_1', vncPassword: 'aB3dE6gH', screen: { width: 800, height: 600 } };

test.each([
  ['with a screen', spec],
  ['headless', { ...spec, headless: true }],
])('a browser %s starts no renderer before a page needs it', (_, given) => {
  // Chromium reads the last list alone.
  const lists = chromiumFlags(given).filter((flag) => flag.startsWith('--disable-features='));
  expect(lists).toHaveLength(1);
  const features = lists[0]?.split('=')[1]?.split(',');
  expect(features).toEqual(
    expect.arrayContaining([
      'WebUIOmniboxPopup',
      'WebUIOmniboxAimPopup',
      'SpareRendererForSitePerProcess',
    ]),
  );
});
