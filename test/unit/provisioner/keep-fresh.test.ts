import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { BrowserImage } from '#src/browsers/docker/browser-image.ts';
import { keepFresh, type CurrentImage } from '#src/browsers/docker/current-image.ts';
import { createVirtualTime, type VirtualTime } from '#test/support/time/virtual-time.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const quiet = { info: () => {}, warn: () => {} };

// Forty days: in vitest's fake time the polls of what else this process runs would pass them, too.
let time: VirtualTime;
beforeEach(() => void (time = createVirtualTime(1)));

/** An image whose builds are counted; each fails as long as `isBroken`. */
function open({ rebuildMs, age = 0 }: { rebuildMs: number | null; age?: number }) {
  const state = { isBroken: false, rebuilds: 0, looks: 0, builtAt: time.now() - age };
  const image: CurrentImage = {
    now: () => ({ builtAt: state.builtAt }) as BrowserImage,
    onChange: () => {},
    look: async () => void (state.looks += 1),
  };
  async function rebuild(): Promise<void> {
    state.rebuilds += 1;
    if (state.isBroken) throw new Error('the mirror does not answer');
    state.builtAt = time.now();
  }
  const fresh = time.runAs({ isDead: false }, () =>
    keepFresh({ image, rebuild, rebuildMs, log: quiet }),
  );
  onTestFinished(() => fresh[Symbol.dispose]());
  return { state, fresh };
}

const pass = (ms: number) => time.runUntil(() => false, ms);

test('an image is rebuilt when it is a period old, and again a period later', async () => {
  const { state } = open({ rebuildMs: 7 * DAY });
  await pass(7 * DAY - MINUTE);
  expect(state.rebuilds).toBe(0);
  await pass(0.7 * DAY + 2 * MINUTE);
  expect(state.rebuilds).toBe(1);
  await pass(7.7 * DAY + 2 * MINUTE);
  expect(state.rebuilds).toBe(2);
});

test('a newer image is looked for each minute, whether the image is rebuilt or not', async () => {
  const { state } = open({ rebuildMs: null, age: 90 * DAY });
  await pass(DAY);
  expect(state).toMatchObject({ rebuilds: 0, looks: DAY / MINUTE });
});

test('a failed rebuild is tried again after an hour, then after two, at last once a day', async () => {
  const { state } = open({ rebuildMs: 7 * DAY, age: 30 * DAY });
  state.isBroken = true;
  while (state.rebuilds === 0) await pass(MINUTE);
  await pass(HOUR - MINUTE);
  expect(state.rebuilds).toBe(1);
  await pass(2 * MINUTE);
  expect(state.rebuilds).toBe(2);
  await pass(2 * HOUR);
  expect(state.rebuilds).toBe(3);
  await pass(30 * DAY);
  const rebuilds = state.rebuilds;
  await pass(10 * DAY);
  expect(state.rebuilds - rebuilds).toBe(10);
  // Once it has succeeded it is due a period later.
  state.isBroken = false;
  await pass(DAY);
  const last = state.rebuilds;
  await pass(6 * DAY);
  expect(state.rebuilds).toBe(last);
});

test('after its end nothing is rebuilt', async () => {
  const { state, fresh } = open({ rebuildMs: 7 * DAY });
  fresh[Symbol.dispose]();
  await pass(30 * DAY);
  expect(state).toMatchObject({ rebuilds: 0, looks: 0 });
});
