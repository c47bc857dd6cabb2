import { inflateSync } from 'node:zlib';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import type { SessionEvent, SessionState } from '#events/session.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import {
  createRecorder,
  type RecorderOptions,
} from '#src/features/recordings/recorder/recorder.ts';
import { firstLink, nextLink } from '#src/features/recordings/chain.ts';
import { createFramebuffer } from '#src/features/recordings/framebuffer.ts';
import { parseSegmentKey, recordingPrefix, segmentKey } from '#src/features/recordings/keys.ts';
import { readSegment, type Segment } from '#src/features/recordings/segment-format.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, browser, requested, stopRequested, T0 } from '#test/support/examples.ts';
import { startScriptedScreen, type ScriptedScreen } from '#test/support/servers/scripted-screen.ts';
import { eventually } from '#test/support/service/service.ts';

/** The recorder over a scripted screen and an object store that a test makes slow. */

const RED = [200, 10, 20, 0];
const GREEN = [10, 200, 30, 0];
const square = { x: 8, y: 8, width: 16, height: 16 };
/** Short, so that a test waits for facts alone. */
const times = { segmentMs: 20, updateMs: 1, reconnectMs: 1, reportEveryMs: 1, retryMs: 1 };
const wait = { timeout: 30_000, interval: 2 };

let screen: ScriptedScreen;
let store: ObjectStore;
beforeEach(async () => {
  screen = await startScriptedScreen();
  store = createMemoryObjectStore();
});
afterEach(() => screen[Symbol.asyncDispose]());

/** What is reported of a session, decided as the event store would. */
function reportsOf(given: SessionState) {
  let state = given;
  const events: Extract<SessionEvent, { type: 'session.recording-stored' }>[] = [];
  const apply = (event: SessionEvent) => {
    state = evolve<'session'>(sessionRef, state, event);
  };
  const session: RecorderOptions['reporter']['session'] = async (_identity, command) => {
    const decided = decide(command, state);
    if (isRejection(decided)) return decided;
    for (const event of decided) {
      apply(event);
      if (event.type === 'session.recording-stored') events.push(event);
    }
    return { state, sequence: 1, isChanged: decided.length > 0 } as never;
  };
  return {
    events,
    apply,
    session,
    state: () => state,
    segments: () => events.flatMap(({ data }) => data.segments),
    gaps: () => events.flatMap(({ data }) => data.gaps),
  };
}

function startRecorder(changes: Partial<RecorderOptions> & Pick<RecorderOptions, 'reporter'>) {
  return createRecorder({
    objects: store,
    vncPasswordOf: () => 'password',
    log: pino({ level: 'silent' }),
    now: Date.now,
    maxBytes: 1024 ** 3,
    times,
    ...changes,
  });
}

/** A browser that shows the screen. */
function showing(workloadId: string) {
  return { workloadId, cdp: { ...screen.address, path: '' }, vnc: screen.address };
}

/** The recorder of a session. */
function recordSession(
  changes: Partial<RecorderOptions> = {},
  given: SessionState = after([requested({ record: true }), activated(T0, browser('wl_1'))]),
  isAdopted = false,
) {
  const reports = reportsOf(given);
  const recorder = startRecorder({ reporter: reports, ...changes });
  recorder.start(showing('wl_1'), given, isAdopted);
  return { ...reports, recorder, finish: () => recorder.finish('wl_1') };
}

function after(events: SessionEvent[]): SessionState {
  const state = foldAll<'session'>(sessionRef, null, events);
  if (state === null) throw new Error('no session');
  return state;
}

/** The stored segments in their order. */
async function storedSegments(): Promise<(Segment & { number: number })[]> {
  const found: (Segment & { number: number })[] = [];
  for await (const { key } of store.list(`recordings/${sessionRef.organizationId}/`)) {
    const got = await store.get(key);
    const bytes = Buffer.concat(await Array.fromAsync(got?.body ?? []));
    found.push({ ...readSegment(inflateSync(bytes)), number: parseSegmentKey(key)?.number ?? 0 });
  }
  return found;
}

/** What is shown at the end of the recording. */
async function lastPicture(): Promise<Uint8ClampedArray> {
  const shown = createFramebuffer();
  for (const { width, height, full, messages } of await storedSegments()) {
    if (full) shown.resize(width, height);
    for (const { bytes } of messages) shown.apply(bytes);
  }
  return shown.pixels;
}

async function untilStored(count: number, { segments }: ReturnType<typeof reportsOf>) {
  await vi.waitFor(() => expect(segments().length).toBeGreaterThanOrEqual(count), wait);
}

/** Changes the screen until the recorder does not ask for changes any more. */
async function untilNothingIsAsked(): Promise<void> {
  let [painted, same, before] = [0, 0, -1];
  await eventually(() => {
    same = screen.answered() === before ? same + 1 : 0;
    before = screen.answered();
    screen.paint(square, [painted % 250, 0, 0, 0]);
    painted += 1;
    return same === 10;
  }, 'the recorder asks for no more changes');
}

describe('a recording', () => {
  it('has what the screen showed, and ends with its session', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    screen.paint(square, RED);
    await untilStored(2, recorded);
    screen.paint({ ...square, x: 30 }, GREEN);
    await untilStored(3, recorded);
    recorded.apply(stopRequested());
    await recorded.finish();
    expect(await lastPicture()).toEqual(screen.picture());
    expect(recorded.gaps()).toEqual([]);
    await vi.waitFor(() => expect(screen.viewers).toBe(0), wait);
  });

  it('begins with the whole screen; what follows are changes', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    screen.paint(square, RED);
    await untilStored(2, recorded);
    await recorded.finish();
    const [first, second] = recorded.segments();
    expect([first?.full, second?.full]).toEqual([true, false]);
    expect(second?.bytes).toBeLessThan(200);
  });

  it('of a screen that does not change stores and reports nothing more', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    const { length } = recorded.events;
    await recorded.finish();
    expect(recorded.events).toHaveLength(length);
    expect(await storedSegments()).toHaveLength(1);
  });

  it('is proved by the chain in the events', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    screen.paint(square, RED);
    await untilStored(2, recorded);
    await recorded.finish();
    const hashes = recorded.segments().map(({ sha256 }) => sha256);
    const links = [];
    for await (const { sha256 } of store.list('recordings/')) links.push(sha256);
    expect(hashes).toEqual(links);
    expect(recorded.state().recording).toMatchObject({
      segments: hashes.length,
      chain: hashes.reduce(nextLink, firstLink(sessionRef)),
    });
  });

  it('goes on with the whole screen when its size changes', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    screen.resize(80, 40);
    screen.paint(square, GREEN);
    await vi.waitFor(
      async () => expect((await storedSegments()).at(-1)).toMatchObject({ width: 80, height: 40 }),
      wait,
    );
    await recorded.finish();
    expect((await storedSegments()).find(({ width }) => width === 80)?.full).toBe(true);
    expect(await lastPicture()).toEqual(screen.picture());
  });

  it('is not made of a session that did not ask for it', async () => {
    const state = after([requested(), activated()]);
    const recorded = recordSession({}, state);
    await recorded.finish();
    expect([recorded.events, screen.viewers]).toEqual([[], 0]);
  });

  it('has the whole screen again after a while', async () => {
    const recorded = recordSession({ times: { ...times, wholeEveryMs: 0 } });
    await untilStored(1, recorded);
    screen.paint(square, RED);
    await untilStored(2, recorded);
    await recorded.finish();
    expect(recorded.segments().map(({ full }) => full)).toEqual([true, true]);
    expect(await lastPicture()).toEqual(screen.picture());
  });
});

describe('a gap', () => {
  it('is where the store is slow: the recorder waits, and holds no more than its bound', async () => {
    const gate = Promise.withResolvers<void>();
    const slow: ObjectStore = {
      ...store,
      async put(...given) {
        await gate.promise;
        return store.put(...given);
      },
    };
    const recorded = recordSession({ objects: slow, times: { ...times, segmentMs: 1 } });
    await untilNothingIsAsked();
    screen.paint(square, GREEN);
    gate.resolve();
    await vi.waitFor(() => expect(recorded.gaps()).toHaveLength(1), wait);
    await recorded.finish();
    expect(recorded.gaps()).toMatchObject([{ reason: 'slow_store', until: expect.any(String) }]);
    expect(await lastPicture()).toEqual(screen.picture());
  });

  it('is where the store does not take a segment, up to the next whole screen', async () => {
    let isBroken = true;
    let removed = 0;
    const failing: ObjectStore = {
      ...store,
      put: (...given) => (isBroken ? Promise.reject(new Error('no room')) : store.put(...given)),
      remove: async () => void (removed += 1),
    };
    const recorded = recordSession({ objects: failing });
    // It is given up after the third try.
    await vi.waitFor(() => expect(removed).toBeGreaterThan(0), wait);
    isBroken = false;
    await vi.waitFor(() => {
      screen.paint(square, GREEN);
      expect(recorded.gaps()).not.toEqual([]);
    }, wait);
    await recorded.finish();
    expect(recorded.gaps()[0]?.reason).toBe('store_failed');
    expect(recorded.segments()[0]).toMatchObject({ number: 1, full: true });
    expect(await lastPicture()).toEqual(screen.picture());
  });

  it('is where the screen is lost; the recording goes on when it is back', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    screen.hangUp();
    await untilStored(2, recorded);
    await recorded.finish();
    expect(recorded.gaps()).toMatchObject([{ reason: 'screen_lost' }]);
    expect(recorded.segments()[1]?.full).toBe(true);
  });

  it('is while a person has the session, and nothing of that is stored', async () => {
    const recorded = recordSession();
    await untilStored(1, recorded);
    const before = screen.picture().slice();
    const handedOff = (status: 'taken' | 'done') =>
      recorded.recorder.follow({ ...recorded.state(), handoff: { status } } as SessionState);
    handedOff('taken');
    await untilNothingIsAsked();
    expect(await lastPicture()).toEqual(before);
    const stored = recorded.segments().length;
    handedOff('done');
    await untilStored(stored + 1, recorded);
    await recorded.finish();
    expect(recorded.gaps()).toMatchObject([{ reason: 'handoff', until: expect.any(String) }]);
    expect(recorded.segments()[stored]?.full).toBe(true);
    expect(await lastPicture()).toEqual(screen.picture());
  });

  it('begins with the recording where a person has the session already', async () => {
    const given = after([requested({ record: true }), activated(T0, browser('wl_1'))]);
    const handoff = { status: 'taken' } as SessionState['handoff'];
    const recorded = recordSession({}, { ...given, handoff } as SessionState, true);
    await recorded.finish();
    expect(recorded.segments()).toEqual([]);
    expect(recorded.gaps()).toMatchObject([{ reason: expect.stringMatching(/handoff|restart/) }]);
  });

  it('without an end is where the recording has its greatest size', async () => {
    const recorded = recordSession({ maxBytes: 1 });
    // It is judged before each update; a screen that does not change has none.
    await untilStored(1, recorded);
    screen.paint(square, RED);
    await vi.waitFor(() => expect(recorded.state().recording?.isOver).toBe(true), wait);
    await recorded.finish();
    expect(recorded.gaps()).toEqual([{ from: expect.any(String), reason: 'limit' }]);
    // The update that was asked for before may still be there.
    expect(recorded.segments().length).toBeLessThanOrEqual(2);
    const again = recordSession({}, recorded.state(), true);
    await again.finish();
    expect(again.events).toEqual([]);
  });

  it('is between two processes; what the first had not reported is not lost', async () => {
    const first = recordSession({ times: { ...times, reportEveryMs: 60_000 } });
    await vi.waitFor(async () => expect(await storedSegments()).toHaveLength(1), wait);
    // It is killed: nothing of it is reported.
    expect(first.events).toEqual([]);
    const [lost] = await storedSegments();
    const second = recordSession({}, first.state(), true);
    await untilStored(2, second);
    await second.finish();
    await first.finish();
    expect(second.segments().map(({ number, full }) => [number, full])).toEqual([
      [1, true],
      [2, true],
    ]);
    expect(second.gaps()).toMatchObject([{ reason: 'restart' }]);
    expect(Date.parse(second.gaps()[0]?.from ?? '')).toBe(lost?.messages.at(-1)?.at);
  });
});

test('segments of one session that wait hold up another one, and no longer than they wait', async () => {
  const gate = Promise.withResolvers<void>();
  const put = vi.fn<ObjectStore['put']>(async (key, ...given) => {
    if (key.startsWith(recordingPrefix(first.state()))) await gate.promise;
    return store.put(key, ...given);
  });
  const given = after([requested({ record: true }), activated(T0, browser('wl_1'))]);
  const [first, second] = [reportsOf(given), reportsOf({ ...given, id: 'ses_2' })];
  const log = { warn: vi.fn(), info: vi.fn() };
  const recorder = startRecorder({
    objects: { ...store, put },
    reporter: {
      session: (identity, ...told) =>
        (identity.id === 'ses_2' ? second : first).session(identity, ...told),
    },
    log,
    waitingBytesMax: 1,
  });
  // Each warns once when it is held up.
  recorder.start(showing('wl_1'), first.state(), false);
  await vi.waitFor(() => expect(put).toHaveBeenCalled(), wait);
  screen.paint(square, RED);
  await vi.waitFor(() => expect(log.warn).toHaveBeenCalledTimes(1), wait);
  recorder.start(showing('wl_2'), second.state(), false);
  await vi.waitFor(() => expect(log.warn).toHaveBeenCalledTimes(2), wait);
  expect(second.segments()).toEqual([]);
  gate.resolve();
  for (const { gaps } of [first, second]) {
    const held = expect.objectContaining({ reason: 'slow_store', until: expect.any(String) });
    await vi.waitFor(() => expect(gaps()).toContainEqual(held), wait);
  }
  await untilStored(1, second);
  const before = [first, second].map(({ segments }) => segments().length);
  screen.paint(square, GREEN);
  for (const [at, one] of [first, second].entries()) await untilStored((before[at] ?? 0) + 1, one);
  for (const workloadId of ['wl_1', 'wl_2']) await recorder.finish(workloadId);
});

test('the end of a session waits a while for its recording, not longer', async () => {
  const put = vi.fn<ObjectStore['put']>(() => new Promise(() => undefined));
  const recorded = recordSession({
    objects: { ...store, put },
    times: { ...times, finishWithinMs: 20 },
  });
  await vi.waitFor(() => expect(put).toHaveBeenCalled(), wait);
  await recorded.finish();
  expect(recorded.events).toEqual([]);
});

test('the name of a segment says what the index needs', () => {
  const named = { number: 12, startedAt: T0, endedAt: T0 + 5, full: true };
  expect(parseSegmentKey(segmentKey(sessionRef, named))).toEqual(named);
  expect(parseSegmentKey('recordings/org/ses/thing')).toBeNull();
});
