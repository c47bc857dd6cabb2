import type { Replay, ReplaySegment } from './replay.ts';

/** Pictures of a video, each shown for the same time. */
export type Frames = { width: number; height: number; pictures: AsyncIterable<Uint8Array> };

/**
 * The pictures of a recording, `perSecond` a second, red, green, blue and alpha of each pixel. All
 * have the size of the first; of a larger screen the upper left part is shown.
 * @param idleMaxMs a longer time without a change is cut to this; Infinity: none is
 * @returns null: no segment
 */
export async function framesOf(
  segments: readonly ReplaySegment[],
  replay: Replay,
  { perSecond, idleMaxMs }: { perSecond: number; idleMaxMs: number },
): Promise<Frames | null> {
  const [first, last] = [segments[0], segments.at(-1)];
  if (first === undefined || last === undefined) return null;
  await replay.show(first.startedAt);
  const { width, height } = replay.screen;
  const everyMs = 1_000 / perSecond;
  async function* pictures() {
    let cutMs = 0;
    for (let at = first?.startedAt ?? 0; at <= (last?.endedAt ?? 0) + everyMs; at += everyMs) {
      await replay.show(at + cutMs);
      yield cropped(replay, width, height);
      const next = await replay.nextChange();
      if (next === null) return;
      const idleMs = next - (at + cutMs);
      if (idleMs > idleMaxMs) cutMs += idleMs - idleMaxMs;
    }
  }
  return { width, height, pictures: pictures() };
}

function cropped({ screen }: Replay, width: number, height: number): Uint8Array {
  const picture = new Uint8Array(width * height * 4);
  const wide = Math.min(width, screen.width);
  for (let row = 0; row < Math.min(height, screen.height); row += 1) {
    const from = row * screen.width * 4;
    picture.set(screen.pixels.subarray(from, from + wide * 4), row * width * 4);
  }
  return picture;
}
