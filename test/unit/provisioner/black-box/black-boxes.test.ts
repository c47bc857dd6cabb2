import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SessionState } from '#events/session.ts';
import { thumbnailKey } from '#src/kernel/domain/session/thumbnail.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { BrowserExit, RunningBrowser } from '#src/browsers/browsers.ts';
import { createBlackBoxes } from '#src/features/black-box/black-boxes.ts';
import type { EventListener, ObservedTarget } from '#src/browsers/observer/part.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

const SESSION = {
  organizationId: 'org_acme',
  id: 'ses_1',
  status: 'active',
  workload: { workloadId: 'wl_1' },
} as Extract<SessionState, { status: 'active' }>;
const TAKEN = { ...SESSION, handoff: { status: 'taken' } } as typeof SESSION;
const cdp = { host: '127.0.0.1', port: 1, path: '/x' };
const BROWSER: RunningBrowser = { workloadId: 'wl_1', cdp, vnc: cdp };
const KILLED = {
  workloadId: 'wl_1',
  reason: 'out_of_memory',
  exitCode: 137,
  memoryPeakBytes: 5_000,
  endedAt: 0,
  detail: '',
} satisfies BrowserExit;

let pictures: (Buffer | Error | Promise<Buffer>)[];
let memory: number;
let warnings: string[];
let objects: ReturnType<typeof createMemoryObjectStore>;
let boxes: ReturnType<typeof createBlackBoxes>;
beforeEach(() => open(60_000));
afterEach(async () => {
  vi.useRealTimers();
  await boxes[Symbol.asyncDispose]();
});

/** `pictures` are what the browser shows, one after the other, the last one from then on. */
function open(sampleEveryMs: number): void {
  pictures = [];
  memory = 0;
  warnings = [];
  objects = createMemoryObjectStore();
  boxes = createBlackBoxes({
    log: {
      debug: () => undefined,
      warn: (_: object, text: string) => void warnings.push(text),
    } as unknown as Logger,
    objects,
    browsers: { memoryUsed: async () => memory },
    take: async () => {
      const next = pictures.length > 1 ? pictures.shift() : pictures[0];
      if (next === undefined || next instanceof Error) throw next ?? new Error('no page');
      return next;
    },
    sampleEveryMs,
  });
}

/** Attaches to the browser's page. @returns what it sends, and the function that navigates it */
async function attach(workloadId = 'wl_1') {
  const sent: string[] = [];
  const listeners = new Map<string, EventListener>();
  await boxes.part.pages?.attached({
    workloadId,
    targetId: 'main',
    send: async (method: string) => void sent.push(method),
    on: (event: string, listener: EventListener) => void listeners.set(event, listener),
    closed: new AbortController().signal,
  } as unknown as ObservedTarget);
  const navigate = (url: string) => listeners.get('Page.frameNavigated')?.({ frame: { url } });
  return { sent, navigate };
}

/** The picture, once all that is being stored is. */
async function stored(): Promise<string | null> {
  await boxes[Symbol.asyncDispose]();
  const found = await objects.get(thumbnailKey(SESSION));
  if (found === null) return null;
  const pieces: Uint8Array[] = [];
  for await (const piece of found.body) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test('what a page did before the session began is not told', async () => {
  const { navigate } = await attach();
  navigate('https://before.test/');
  boxes.begin(BROWSER, SESSION);
  expect(await boxes.end('wl_1')).toBeNull();
  expect(await boxes.end('wl_1')).toBeNull();
});

test('the end of a session that opened a page has its picture, which is stored', async () => {
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/?q=1');
  pictures = [Buffer.from('jpeg')];
  memory = 4_000;
  expect(await boxes.end('wl_1')).toEqual({
    address: 'https://shop.test/',
    memoryPeakBytes: 4_000,
    thumbnailBytes: 4,
  });
  expect(await stored()).toBe('jpeg');
});

test('a browser that ended by itself has the picture and the memory of before', async () => {
  await boxes[Symbol.asyncDispose]();
  open(1);
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  memory = 9_000;
  pictures = [new Error('it loads'), Buffer.from('one'), Buffer.from('other')];
  navigate('https://shop.test/');
  await expect.poll(() => pictures.length).toBe(1);
  await boxes[Symbol.asyncDispose]();
  expect(await boxes.end('wl_1', KILLED)).toMatchObject({
    exitCode: 137,
    signal: 'SIGKILL',
    outOfMemory: true,
    memoryPeakBytes: 9_000,
  });
  expect(await stored()).toMatch(/one|other/);
});

test('the most memory is that of the end, if the system knows it', async () => {
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  expect(await boxes.end('wl_1', KILLED)).toMatchObject({ memoryPeakBytes: 5_000 });
});

test('a session that wants nothing noted has no picture, and its pages are left alone', async () => {
  const { sent, navigate } = await attach();
  pictures = [Buffer.from('jpeg')];
  boxes.begin(BROWSER, { ...SESSION, blackBox: false });
  navigate('https://shop.test/');
  expect(await boxes.end('wl_1')).toBeNull();
  expect(await stored()).toBeNull();
  expect(sent.slice(4)).toContain('Runtime.disable');
});

test('a picture that is too large is none', async () => {
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  pictures = [Buffer.alloc(300_000)];
  expect(await boxes.end('wl_1')).toEqual({ address: 'https://shop.test/' });
  expect(await stored()).toBeNull();
});

test('a browser that hangs holds up the end of its session for half a second', async () => {
  vi.useFakeTimers();
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  pictures = [new Promise(() => undefined)];
  let told: unknown = 'nothing yet';
  void boxes.end('wl_1').then((box) => (told = box));
  await vi.advanceTimersByTimeAsync(499);
  expect(told).toBe('nothing yet');
  await vi.advanceTimersByTimeAsync(1);
  expect(told).toEqual({ address: 'https://shop.test/' });
});

test('four ends wait for a picture at once, a fifth does not', async () => {
  vi.useFakeTimers();
  const hangs = new Promise<Buffer>(() => undefined);
  pictures = [hangs];
  const told: string[] = [];
  for (const workloadId of ['wl_1', 'wl_2', 'wl_3', 'wl_4', 'wl_5']) {
    const { navigate } = await attach(workloadId);
    boxes.begin({ ...BROWSER, workloadId }, SESSION);
    navigate('https://shop.test/');
    void boxes.end(workloadId).then(() => told.push(workloadId));
  }
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual(['wl_5']);
  await vi.advanceTimersByTimeAsync(500);
  expect(told).toHaveLength(5);
});

test('while a person has a hand-off, the picture of before stays the last', async () => {
  vi.useFakeTimers();
  open(60_000);
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  pictures = [Buffer.from('before')];
  await vi.advanceTimersByTimeAsync(60_000);
  boxes.follow(TAKEN);
  pictures = [Buffer.from('password')];
  memory = 4_000;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await boxes.end('wl_1')).toMatchObject({ thumbnailBytes: 6, memoryPeakBytes: 4_000 });
  expect(await stored()).toBe('before');
});

test('a hand-off that is taken while a picture is made has none of it', async () => {
  vi.useFakeTimers();
  open(60_000);
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  const made = Promise.withResolvers<Buffer>();
  pictures = [made.promise];
  await vi.advanceTimersByTimeAsync(5_000);
  boxes.follow(TAKEN);
  made.resolve(Buffer.from('password'));
  expect(await boxes.end('wl_1')).toEqual({ address: 'https://shop.test/' });
  expect(await stored()).toBeNull();
});

test('a session that is adopted while a person has it has no picture until it is over', async () => {
  const { navigate } = await attach();
  boxes.begin(BROWSER, TAKEN);
  navigate('https://shop.test/');
  boxes.follow({ ...SESSION, id: 'ses_2' });
  pictures = [Buffer.from('after')];
  expect(await boxes.end('wl_1')).toEqual({ address: 'https://shop.test/' });
  const other = await attach();
  boxes.begin(BROWSER, TAKEN);
  boxes.follow(SESSION);
  other.navigate('https://shop.test/');
  expect(await boxes.end('wl_1')).toMatchObject({ thumbnailBytes: 5 });
});

test('a store that refuses costs the picture alone', async () => {
  const { navigate } = await attach();
  boxes.begin(BROWSER, SESSION);
  navigate('https://shop.test/');
  pictures = [Buffer.from('jpeg')];
  objects.put = () => Promise.reject(new Error('full'));
  expect(await boxes.end('wl_1')).toMatchObject({ thumbnailBytes: 4 });
  await expect.poll(() => warnings).toEqual(['failed to store the last picture of a session']);
});
