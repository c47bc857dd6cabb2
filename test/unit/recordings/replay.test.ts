import { describe, expect, it } from 'vitest';
import { createReplay, type ReplaySegment } from '#src/features/recordings/replay.ts';
import type { Segment } from '#src/features/recordings/segment-format.ts';

/** What is read and decoded to show a moment of a recording, counted rather than timed. */

const T0 = Date.parse('2026-11-25T09:00:00.000Z');
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const SIDE = 16;
/** As the recorder makes them: ten messages a second, 5 s a segment, all of it each minute. */
const SEGMENT_MS = 5 * SECOND;
const MESSAGES = 50;
const SEGMENTS_A_MINUTE = MINUTE / SEGMENT_MS;

/** A rectangle of one colour, as raw pixels: a message of a recording. */
function rectangle(x: number, y: number, width: number, height: number, colour: number) {
  const bytes = Buffer.alloc(16 + 4 * width * height, colour);
  bytes.writeUInt16BE(0, 0);
  bytes.writeUInt16BE(1, 2);
  for (const [index, value] of [x, y, width, height].entries())
    bytes.writeUInt16BE(value, 4 + 2 * index);
  bytes.writeInt32BE(0, 12);
  return bytes;
}

/** Each message paints another pixel in another colour. */
function segmentOf(number: number): Segment {
  const startedAt = T0 + number * SEGMENT_MS;
  const full = number % SEGMENTS_A_MINUTE === 0;
  const messages = Array.from({ length: MESSAGES }, (_, index) => {
    const count = number * MESSAGES + index;
    const [x, y] = [count % SIDE, Math.floor(count / SIDE) % SIDE];
    const isWhole = full && index === 0;
    const bytes = isWhole ? rectangle(0, 0, SIDE, SIDE, number) : rectangle(x, y, 1, 1, count);
    return { at: startedAt + index * 100, bytes };
  });
  return { width: SIDE, height: SIDE, full, startedAt, messages };
}

/** A recording of so many minutes, and what a replay of it has read and decoded. */
function recordingOf(minutes: number) {
  const count = minutes * SEGMENTS_A_MINUTE;
  const work = { segments: 0, messages: 0 };
  const segments: ReplaySegment[] = Array.from({ length: count }, (_, number) => {
    const { startedAt, full, messages } = segmentOf(number);
    return { name: `${number}`, startedAt, endedAt: messages.at(-1)?.at ?? startedAt, full };
  });
  const replay = createReplay(
    () => segments,
    async (name) => {
      work.segments += 1;
      return segmentOf(Number(name));
    },
  );
  const apply = replay.screen.apply.bind(replay.screen);
  replay.screen.apply = (message) => {
    work.messages += 1;
    apply(message);
  };
  const pixels = () => Buffer.from(replay.screen.pixels).toString('hex');
  /** The work since the last question. */
  const done = () => {
    const { ...since } = work;
    Object.assign(work, { segments: 0, messages: 0 });
    return since;
  };
  return { replay, pixels, done, end: T0 + minutes * MINUTE };
}

describe('a replay', () => {
  it('shows the end of a recording by what came since the last whole screen alone', async () => {
    for (const minutes of [2, 10, 60]) {
      const { replay, done, end } = recordingOf(minutes);
      expect(await replay.show(end)).toBe(true);
      // A minute's work: reading it all would be as many times more as the minutes are.
      const minute = { segments: SEGMENTS_A_MINUTE, messages: SEGMENTS_A_MINUTE * MESSAGES };
      expect(done()).toEqual(minute);
    }
  });

  it('shows there what playing from the beginning shows', async () => {
    const [sought, played] = [recordingOf(3), recordingOf(3)];
    const at = sought.end - 12_345;
    await sought.replay.show(at);
    for (let now = T0; now < at; now += 700) await played.replay.show(now);
    await played.replay.show(at);
    expect(sought.pixels()).toBe(played.pixels());
    expect(sought.pixels()).not.toBe(Buffer.alloc(4 * SIDE * SIDE).toString('hex'));
    expect(played.done().messages).toBeGreaterThan(2 * sought.done().messages);
  });

  it('goes on from where it is: each message is decoded once', async () => {
    const { replay, done } = recordingOf(1);
    await replay.show(T0 + 10 * SECOND);
    done();
    await replay.show(T0 + 11 * SECOND);
    expect(done()).toEqual({ segments: 0, messages: 10 });
    expect(await replay.show(T0 + 11 * SECOND)).toBe(false);
    expect(done().messages).toBe(0);
  });

  it('goes back a little without reading a segment again', async () => {
    const { replay, done, end } = recordingOf(5);
    await replay.show(end);
    done();
    await replay.show(end - 20 * SECOND);
    const { segments, messages } = done();
    expect(segments).toBe(0);
    expect(messages).toBeLessThanOrEqual(SEGMENTS_A_MINUTE * MESSAGES);
  });
});
