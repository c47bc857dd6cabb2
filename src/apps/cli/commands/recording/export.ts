import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isRejection, reject } from '#src/kernel/errors.ts';
import { toFbs } from '#src/features/recordings/fbs.ts';
import { framesOf, type Frames } from '#src/features/recordings/frames.ts';
import {
  readRecordingIndex,
  type IndexedSegment,
} from '#src/features/recordings/recording-index.ts';
import { createReplay } from '#src/features/recordings/replay.ts';
import { parseId, textUpTo } from '../../arguments.ts';
import type { Command, CommandSession } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { loadSegment, sessionOf } from './recorded.ts';

const FRAMES_A_SECOND = 10;
const IDLE_MAX_MS = 2_000;

/** Writes a recording as an FBS file, or as a video where ffmpeg is there. */
export const exportRecording: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    const file = options.required('out', parseFile);
    const idleMaxMs = options.has('with-idle') ? Number.POSITIVE_INFINITY : IDLE_MAX_MS;
    return async (service) => {
      const session = await sessionOf(service, id);
      if (isRejection(session)) return session;
      const { objects, context } = service;
      const { segments, gaps } = await readRecordingIndex(context.eventStore, objects, session);
      if (segments.length === 0) return reject('RECORDING_NOT_FOUND', { session_id: id });
      if (file.endsWith('.mp4')) await writeVideo(service, segments, { file, idleMaxMs });
      else {
        const read = (async function* () {
          for (const { key } of segments) yield loadSegment(service, key);
        })();
        const out = createWriteStream(`${file}.new`, { mode: 0o600 });
        await pipeline(Readable.from(toFbs(read), { objectMode: false }), out);
        await rename(`${file}.new`, file);
      }
      return {
        json: { session_id: id, file, segments: segments.length, gaps: gaps.length },
        text: `${segments.length} segments written to ${file}; ${gaps.length} gaps`,
      };
    };
  },
};

function parseFile(text: string): string {
  const file = textUpTo(4096)(text);
  if (!/\.(fbs|mp4)$/.test(file)) throw new UsageError('is the name of a .fbs or .mp4 file');
  return file;
}

/** @throws Error without ffmpeg, or where it fails */
async function writeVideo(
  service: CommandSession,
  segments: readonly IndexedSegment[],
  { file, idleMaxMs }: { file: string; idleMaxMs: number },
): Promise<void> {
  const named = segments.map(({ key, startedAt, endedAt, full }) => ({
    name: key,
    full,
    startedAt: Date.parse(startedAt),
    endedAt: Date.parse(endedAt),
  }));
  const replay = createReplay(
    () => named,
    (key) => loadSegment(service, key),
  );
  const frames = await framesOf(named, replay, { perSecond: FRAMES_A_SECOND, idleMaxMs });
  if (frames !== null) await encode(frames, file);
}

async function encode({ width, height, pictures }: Frames, file: string): Promise<void> {
  const raw = ['-f', 'rawvideo', '-pixel_format', 'rgba', '-video_size', `${width}x${height}`];
  // The codec needs even sides.
  const video = ['-vf', 'pad=ceil(iw/2)*2:ceil(ih/2)*2', '-c:v', 'libx264', '-pix_fmt', 'yuv420p'];
  const input = ['-framerate', String(FRAMES_A_SECOND), '-i', '-'];
  const ffmpeg = spawn('ffmpeg', ['-y', '-loglevel', 'error', ...raw, ...input, ...video, file], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const { promise: ended, resolve, reject } = Promise.withResolvers<number | null>();
  ffmpeg.once('close', resolve).once('error', (cause) => {
    reject(new Error('ffmpeg is needed for a video; without it export a .fbs file', { cause }));
  });
  // Where it ends early, its exit code says so.
  const written = pipeline(Readable.from(pictures), ffmpeg.stdin).catch(() => undefined);
  const code = await ended;
  await written;
  if (code !== 0) throw new Error(`ffmpeg has failed with exit code ${code}`);
}
