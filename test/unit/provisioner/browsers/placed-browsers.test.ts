import { expect, test } from 'vitest';
import { LaunchFailed, type BrowserExit } from '#src/browsers/browsers.ts';
import type {
  FoundPlace,
  ListedPlace,
  Place,
  PlaceEnd,
  PlaceEngine,
} from '#src/browsers/place-engine.ts';
import { PlacedBrowsers } from '#src/browsers/placed-browsers.ts';

/** The last line of a browser that its user has closed. */
const CLOSED = 'Chromium was closed';
const ENDED: PlaceEnd = {
  exitCode: 1,
  endedAt: 1_000,
  isMemoryKill: false,
  output: 'last words',
  told: '',
};
const PROFILE = { tar: null, isKept: true };

function placeOf(workloadId: string): Place {
  const address = { host: '127.0.0.1', port: 1 };
  return {
    browser: { workloadId, cdp: { ...address, path: '/' }, vnc: address },
    egress: null,
  };
}

const specOf = (workloadId: string) => ({
  workloadId,
  vncPassword: 'pass0rd1',
  screen: { width: 1, height: 1 },
});

/** Browsers on an engine that a test plays. */
async function open(changes: Partial<PlaceEngine<Place, PlaceEnd>> = {}) {
  const labels: unknown[] = [];
  const removed: [workloadId: string, isKnown: boolean][] = [];
  const calls = { reconnected: 0, unwatched: 0 };
  const engine: PlaceEngine<Place, PlaceEnd> = {
    kind: 'docker',
    folders: {} as never,
    guard: { check: async () => undefined },
    memoryBytes: 512,
    image: { now: () => ({ version: '1', builtAt: 0, id: 'image', hasRelay: false }) },
    watch: async () => ({
      reconnect: () => void (calls.reconnected += 1),
      [Symbol.asyncDispose]: async () => void (calls.unwatched += 1),
    }),
    isAnswering: async () => true,
    launch: async ({ workloadId }) => placeOf(workloadId),
    remove: async (workloadId, place) => void removed.push([workloadId, place !== null]),
    list: async () => [],
    find: async () => null,
    label: async (place, ...given) => void labels.push([place.browser.workloadId, ...given]),
    explain: async (own, place, end) => end,
    memoryUsed: async () => 1,
    readProfile: async function* () {},
    ...changes,
  };
  const log = { warn: () => undefined };
  const browsers = new PlacedBrowsers<Place, PlaceEnd>(() => engine, { launchTimeoutMs: 1, log });
  const exits: BrowserExit[] = [];
  const first = Promise.withResolvers<BrowserExit>();
  browsers.onExit((exit) => {
    exits.push(exit);
    first.resolve(exit);
  });
  await browsers.watch();
  /** Its engine tells of an end. */
  const end = (workloadId: string, how: Partial<PlaceEnd> = {}) => {
    const own = browsers.own.get(workloadId);
    if (own !== undefined) browsers.handleExit(workloadId, own, { ...ENDED, ...how });
  };
  return { browsers, end, exits, exit: first.promise, labels, removed, calls };
}

const listed = (workloadId: string, sessionId: string | null, closedAt?: number): ListedPlace => ({
  workloadId,
  sessionId,
  look: async () => ({ adoptable: null, ...(closedAt !== undefined && { closedAt }) }),
});

test.each([
  ['it crashed', {}, { reason: 'browser_crashed', detail: 'last words' }],
  [
    'the kernel killed it',
    { exitCode: 137, isMemoryKill: true },
    { reason: 'out_of_memory', memoryPeakBytes: 512 },
  ],
  [
    'the kernel had killed a page, and it crashed',
    { isMemoryKill: true },
    { reason: 'browser_crashed' },
  ],
  ['its user closed it', { exitCode: 0, output: CLOSED }, { reason: 'browser_closed' }],
  [
    'the engine tells why',
    { told: 'by the engine' },
    { reason: 'browser_crashed', detail: 'last words\nby the engine' },
  ],
])('an end: %s', async (_, how, expected) => {
  const { browsers, end, exit, exits, removed } = await open();
  await browsers.launch(specOf('wl_1'));
  end('wl_1', how);
  end('wl_1', { exitCode: 9 });
  expect(await exit).toMatchObject({ workloadId: 'wl_1', endedAt: 1_000, ...expected });
  expect(removed).toEqual([['wl_1', true]]);
  expect(exits).toHaveLength(1);
  expect(browsers.own.get('wl_1')).toBeUndefined();
});

test('a browser that ends before its launch resolves is reported after that', async () => {
  const ready = Promise.withResolvers<Place>();
  const { browsers, end, exit, exits } = await open({ launch: () => ready.promise });
  const launching = browsers.launch(specOf('wl_1'));
  end('wl_1');
  expect(exits).toEqual([]);
  ready.resolve(placeOf('wl_1'));
  expect(await launching).toMatchObject({ workloadId: 'wl_1' });
  expect(await exit).toMatchObject({ workloadId: 'wl_1', reason: 'browser_crashed' });
});

test('a closed browser with a profile stays until it is stopped', async () => {
  const { browsers, end, exit, removed } = await open();
  await browsers.launch({ ...specOf('wl_1'), profile: PROFILE });
  end('wl_1', { exitCode: 0, output: CLOSED });
  expect(await exit).toMatchObject({ reason: 'browser_closed', hasProfile: true });
  expect(removed).toEqual([]);
  browsers.readProfile('wl_1', AbortSignal.abort());
  await browsers.stop('wl_1');
  expect(removed).toEqual([['wl_1', true]]);
  expect(() => browsers.readProfile('wl_1', AbortSignal.abort())).toThrow('no profile here');
});

test('an end names what could not be removed; that stays listed, and a stop tries again', async () => {
  let isAway = true;
  const { browsers, end, exit } = await open({
    remove: async () => {
      if (isAway) throw new Error('away');
    },
    list: async () => [listed('wl_1', 'ses_other')],
  });
  await browsers.launch(specOf('wl_1'));
  end('wl_1');
  expect(await exit).toMatchObject({ detail: 'last words\nError: away' });
  const observed = { workloadId: 'wl_1', sessionId: 'ses_other', adoptable: null };
  expect(await browsers.list()).toEqual([observed]);
  await expect(browsers.stop('wl_1')).rejects.toThrow('away');
  isAway = false;
  await browsers.stop('wl_1');
  expect(browsers.own.get('wl_1')).toBeUndefined();
});

test('a list has what the engine has, what is known here, and what is being launched', async () => {
  const { browsers } = await open({
    launch: ({ workloadId }) =>
      workloadId === 'wl_new' ? new Promise(() => undefined) : Promise.resolve(placeOf(workloadId)),
    list: async () => [listed('wl_own', null), listed('wl_left', 'ses_left', 7)],
  });
  const browser = await browsers.launch(specOf('wl_own'));
  await browsers.assign('wl_own', 'ses_1');
  void browsers.launch(specOf('wl_new'));
  expect(await browsers.list()).toEqual([
    { workloadId: 'wl_own', sessionId: 'ses_1', adoptable: browser },
    { workloadId: 'wl_left', sessionId: 'ses_left', adoptable: null, closedAt: 7 },
    { workloadId: 'wl_new', sessionId: null, adoptable: null },
  ]);
});

test('a label tells the engine of the one before', async () => {
  const { browsers, labels } = await open();
  await browsers.launch(specOf('wl_1'));
  await browsers.assign('wl_1', 'ses_1');
  await browsers.assign('wl_1', 'ses_1');
  await browsers.assign('wl_none', 'ses_1');
  expect(labels).toEqual([
    ['wl_1', 'ses_1', null],
    ['wl_1', 'ses_1', 'ses_1'],
  ]);
});

test('a failed launch leaves nothing here, and tells at once that the engine is away', async () => {
  const { browsers, calls } = await open({
    launch: () => Promise.reject(new LaunchFailed('no', '')),
    isAnswering: async () => false,
  });
  const available: boolean[] = [];
  browsers.onAvailable((isAvailable) => available.push(isAvailable));
  await expect(browsers.launch(specOf('wl_1'))).rejects.toThrow('no');
  expect(available).toEqual([false]);
  expect(calls.reconnected).toBe(1);
  expect(browsers.own.get('wl_1')).toBeUndefined();
  await browsers.availability.engineBack();
  expect(available).toEqual([false, true]);
});

test('an adopted browser is known here, also one whose end came before', async () => {
  const found = (workloadId: string, ends: boolean): FoundPlace<Place, PlaceEnd> => ({
    place: {
      launched: placeOf(workloadId),
      sessionId: 'ses_1',
      image: 'older',
      keepsProfile: false,
    },
    catchUp: (own) => {
      if (ends) browsers.handleExit(workloadId, own, ENDED);
    },
  });
  const { browsers, exit } = await open({
    find: async (id) => (id === 'wl_none' ? null : found(id, id === 'wl_2')),
  });
  expect(await browsers.adopt('wl_none')).toBeNull();
  expect(await browsers.adopt('wl_1')).toMatchObject({ workloadId: 'wl_1' });
  expect(browsers.isOutdated('wl_1')).toBe(true);
  expect(await browsers.adopt('wl_2')).toMatchObject({ workloadId: 'wl_2' });
  expect(await exit).toMatchObject({ workloadId: 'wl_2' });
});

test('leaving stops what is being launched, and nothing that runs', async () => {
  const { browsers, removed, calls } = await open({
    launch: ({ workloadId }, { stopped }) =>
      workloadId === 'wl_run'
        ? Promise.resolve(placeOf(workloadId))
        : new Promise((_, reject) => {
            stopped.addEventListener('abort', () => reject(stopped.reason as Error));
          }),
  });
  await browsers.launch(specOf('wl_run'));
  const launching = browsers.launch(specOf('wl_new'));
  launching.catch(() => undefined);
  await browsers.leave();
  await expect(launching).rejects.toThrow('stopped during the launch');
  expect(removed).toEqual([['wl_new', false]]);
  expect(calls.unwatched).toBe(1);
  await expect(browsers.launch(specOf('wl_late'))).rejects.toThrow('launch after dispose');
});

test('has what its engine has: an image that never changes, and a disk that the system bounds', async () => {
  const { browsers } = await open();
  expect([browsers.onBuild, browsers.storedBytes]).toEqual([undefined, undefined]);
  const { browsers: others } = await open({ profileBytes: async () => 5 });
  await others.launch({ ...specOf('wl_1'), profile: PROFILE });
  await others.launch(specOf('wl_2'));
  expect(await others.storedBytes?.('wl_1')).toBe(5);
  expect(await others.storedBytes?.('wl_2')).toBeNull();
});
