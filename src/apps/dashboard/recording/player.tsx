import { useEffect, useRef, useState } from 'preact/hooks';
import type { Replay } from '#src/features/recordings/replay.ts';
import { sentenceOf } from '../api/api-client.ts';
import { useResource } from '../api/use-resource.ts';
import { Failure } from '../shell/states.tsx';
import { formatTime } from '../shell/time.tsx';
import { advance, clockOf, gapAt, replayOf, spanOf, type RecordingIndex } from './playing.ts';
import './player.css';

const SPEEDS = [1, 2, 4, 8];
const STEP_MS = 100;
/** How often the picture moves on while it plays. */
const TICK_MS = 50;
const AGAIN_MS = 10_000;

/** The recording of a session: plays, seeks, and shows what is missing. */
export function Player({ id, close }: { id: string; close: () => void }) {
  const path = `/api/sessions/${encodeURIComponent(id)}/recording`;
  const [isOver, setOver] = useState(false);
  const { data, failure, reload } = useResource<RecordingIndex>(
    path,
    isOver ? {} : { everyMs: AGAIN_MS },
  );
  useEffect(() => setOver(data !== null && data.ended_at !== null), [data?.ended_at]);
  const span = data === null ? null : spanOf(data);
  return (
    <section class="recording card flush" aria-label="Recording">
      <Failure what="The recording could not be read" failure={failure} retry={reload} />
      {data !== null && span === null && (
        <p class="empty" role="status">
          Nothing is recorded yet: the first seconds are there soon.
        </p>
      )}
      {data !== null && span !== null && <Playing id={id} index={data} span={span} close={close} />}
    </section>
  );
}

type PlayingProps = {
  id: string;
  index: RecordingIndex;
  span: { from: number; until: number };
  close: () => void;
};

function Playing({ id, index, span, close }: PlayingProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState(span.from);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [skipsIdle, setSkipsIdle] = useState(true);
  const { failure, nextChange } = useReplay(id, index, at, canvas);
  const isAtEnd = at >= span.until;
  useEffect(() => {
    if (!isPlaying) return;
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      const elapsedMs = now - last;
      last = now;
      setAt((before) =>
        Math.min(span.until, advance(before, elapsedMs, { speed, skipsIdle, next: nextChange() })),
      );
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [isPlaying, speed, skipsIdle, span.until]);
  useEffect(() => {
    if (isAtEnd && isPlaying) setPlaying(false);
  }, [isAtEnd]);
  const gap = gapAt(index, at);
  function toggle() {
    if (!isPlaying && isAtEnd) setAt(span.from);
    setPlaying(!isPlaying);
  }
  return (
    <>
      <div class="recording-view">
        <canvas ref={canvas} role="img" aria-label={`The screen at ${formatTime(iso(at))}`} />
        {gap !== null && (
          <p class="gap-notice">Not recorded: {REASONS[gap.reason] ?? gap.reason}</p>
        )}
      </div>
      {failure !== null && (
        <p class="notice bad" role="alert">
          {failure}
        </p>
      )}
      <Track index={index} span={span} at={at} moveTo={setAt} />
      <div class="screen-bar">
        <button type="button" class="primary" onClick={toggle}>
          {isPlaying ? 'Pause' : 'Play'}
        </button>
        <output>
          {clockOf(at - span.from)} / {clockOf(span.until - span.from)}
        </output>
        <SpeedSelect speed={speed} setSpeed={setSpeed} />
        <label>
          <input
            type="checkbox"
            checked={skipsIdle}
            onChange={(event) => setSkipsIdle(event.currentTarget.checked)}
          />{' '}
          Skip idle time
        </label>
        <EventSelect index={index} span={span} moveTo={setAt} />
        <span class="muted">{formatTime(iso(at))}</span>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      <GapList index={index} span={span} />
    </>
  );
}

type Span = PlayingProps['span'];
type TrackProps = { index: RecordingIndex; span: Span; at: number; moveTo: (at: number) => void };

/** The slider, and below it where something is missing. */
function Track({ index, span, at, moveTo }: TrackProps) {
  const length = span.until - span.from;
  return (
    <div class="recording-track">
      <input
        type="range"
        min={0}
        max={Math.ceil(length / STEP_MS) * STEP_MS}
        step={STEP_MS}
        value={at - span.from}
        aria-label="Moment of the recording"
        aria-valuetext={`${clockOf(at - span.from)} of ${clockOf(length)}`}
        onInput={(event) =>
          moveTo(Math.min(span.until, span.from + Number(event.currentTarget.value)))
        }
      />
      <div class="recording-gaps" aria-hidden="true">
        {index.gaps.map(({ from, until }) => {
          const left = Math.max(0, Date.parse(from) - span.from) / length;
          const right = (until === null ? length : Date.parse(until) - span.from) / length;
          const width = `${Math.max(0.3, 100 * (Math.min(1, right) - left))}%`;
          return <span key={from} style={{ left: `${100 * left}%`, width }} />;
        })}
      </div>
    </div>
  );
}

function SpeedSelect({ speed, setSpeed }: { speed: number; setSpeed: (speed: number) => void }) {
  return (
    <label>
      Speed{' '}
      <select value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
        {SPEEDS.map((one) => (
          <option key={one} value={one}>
            {one}×
          </option>
        ))}
      </select>
    </label>
  );
}

/** What happened in the session: to go there. */
function EventSelect({ index, span, moveTo }: Omit<TrackProps, 'at'>) {
  return (
    <label>
      Go to{' '}
      <select
        value=""
        onChange={({ currentTarget }) => {
          moveTo(Math.max(span.from, Math.min(span.until, Number(currentTarget.value))));
          currentTarget.value = '';
        }}
      >
        <option value="">an event…</option>
        {index.events.map(({ sequence, type, at }) => (
          <option key={sequence} value={Date.parse(at)}>
            {clockOf(Math.max(0, Date.parse(at) - span.from))} {type}
          </option>
        ))}
      </select>
    </label>
  );
}

function GapList({ index: { gaps }, span }: { index: RecordingIndex; span: Span }) {
  if (gaps.length === 0) return null;
  const sentences = gaps.map(({ from, reason }) => {
    const when = clockOf(Math.max(0, Date.parse(from) - span.from));
    return `${when} ${REASONS[reason] ?? reason}`;
  });
  return (
    <p class="muted small">
      {gaps.length === 1 ? 'One gap' : `${gaps.length} gaps`}: {sentences.join('; ')}
    </p>
  );
}

/** Words for people; a reason that is not here is shown as it is. */
const REASONS: Record<string, string> = {
  slow_store: 'the object store was too slow',
  store_failed: 'the object store did not take it',
  screen_lost: 'the screen did not answer',
  restart: 'the server restarted',
  handoff: 'a person had the session',
  limit: 'the recording had its greatest size',
  missing: 'its segment is gone',
};

/** Draws the moment; while one is being loaded, the newest one asked for waits. */
function useReplay(
  id: string,
  index: RecordingIndex,
  at: number,
  canvas: { current: HTMLCanvasElement | null },
) {
  const [failure, setFailure] = useState<string | null>(null);
  const latest = useRef({ index, at, next: null as number | null });
  const replay = useRef<Replay | null>(null);
  const isBusy = useRef(false);
  Object.assign(latest.current, { index, at });
  useEffect(() => {
    replay.current = replayOf(id, () => latest.current.index);
  }, [id]);
  useEffect(() => {
    void draw();
  }, [at, index]);
  async function draw() {
    const shown = replay.current;
    if (isBusy.current || shown === null) return;
    isBusy.current = true;
    try {
      for (let drawn = Number.NaN; drawn !== latest.current.at;) {
        drawn = latest.current.at;
        if (await shown.show(drawn)) paint(canvas.current, shown);
        latest.current.next = await shown.nextChange();
      }
      setFailure(null);
    } catch (error) {
      setFailure(sentenceOf(error));
    } finally {
      isBusy.current = false;
    }
  }
  return { failure, nextChange: () => latest.current.next };
}

function paint(canvas: HTMLCanvasElement | null, { screen }: Replay): void {
  const { width, height, pixels } = screen;
  if (canvas === null || width === 0) return;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext('2d')?.putImageData(new ImageData(pixels, width, height), 0, 0);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
