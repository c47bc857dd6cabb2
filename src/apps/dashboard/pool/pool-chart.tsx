import { useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme } from '../shell/theme.ts';
import { formatTime } from '../shell/time.tsx';
import { COUNTERS, sentenceOfPoint, type CounterName, type Point } from './series.ts';

const HEIGHT = 280;
/** Lines differ by their dashes too, not by colour alone. The stylesheet has the same of marks. */
const DASHES: Partial<Record<CounterName, number[]>> = {
  provisioning: [10, 4],
  launching: [5, 4],
  terminating: [10, 4, 2, 4],
  waiting: [2, 3],
};
const dark = matchMedia('(prefers-color-scheme: dark)');

type ChartProps = {
  points: readonly Point[];
  hidden: ReadonlySet<CounterName>;
  /** The point that is looked at; -1: none. */
  index: number;
  /** The cursor is on a point; -1: on none. */
  onLook: (index: number) => void;
  /** A point is chosen, by a click or by Enter. */
  onChoose: (index: number) => void;
};

/** The counters as lines. By keyboard it is a slider over its points; Enter chooses one. */
export function PoolChart(props: ChartProps) {
  const { points, hidden, index } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    if (box.current === null) return;
    const made = createChart(box.current, latest);
    chart.current = made.chart;
    return made.end;
  }, []);
  useEffect(() => chart.current?.setData(dataOf(points)), [points]);
  useEffect(() => {
    for (const [at, { name }] of COUNTERS.entries())
      chart.current?.setSeries(at + 1, { show: !hidden.has(name) });
  }, [hidden]);
  // Not its scales: those of new points are still to come.
  useEffect(() => chart.current?.redraw(false), [index]);
  useSignalEffect(() => {
    void theme.value;
    // The attribute that the colours depend on is set after the signal.
    queueMicrotask(() => chart.current && recolour(chart.current));
  });
  const shown = points[index] ?? points.at(-1);
  function onKey(event: KeyboardEvent) {
    const from = index < 0 ? points.length - 1 : index;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: points.length - 1 };
    const next = to[event.key as keyof typeof to];
    if (next !== undefined) props.onLook(Math.min(points.length - 1, Math.max(0, next)));
    else if (event.key === 'Enter') props.onChoose(from);
    else if (event.key === 'Escape') props.onLook(-1);
    else return;
    event.preventDefault();
  }
  return (
    <div
      class="pool-chart"
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label="The pool over time; arrow keys step, Enter chooses a moment"
      aria-valuemin={1}
      aria-valuemax={Math.max(1, points.length)}
      aria-valuenow={index < 0 ? points.length : index + 1}
      aria-valuetext={
        shown === undefined ? 'no point' : `${formatTime(shown.at)}: ${sentenceOfPoint(shown)}`
      }
      onKeyDown={onKey}
    />
  );
}

/**
 * A colour of the stylesheet, as of the theme when it is used. The variable itself holds those of
 * both themes; the computed style of an element has one.
 */
const coloursOf = (box: HTMLElement) => (name: string) => () => {
  box.style.color = `var(${name})`;
  return getComputedStyle(box).color;
};

function createChart(box: HTMLDivElement, latest: { readonly current: ChartProps }) {
  const colour = coloursOf(box);
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 } };
  const chart = new UPlot(
    {
      width: Math.max(1, box.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { y: { range: (_, __, max) => [0, Math.max(4, Math.ceil(max * 1.1))] } },
      axes: [
        { ...axis, size: 32, values: clockValues, ticks: { show: false } },
        {
          ...axis,
          size: 40,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
          ticks: { show: false },
        },
      ],
      series: [
        {},
        ...COUNTERS.map(({ name, title }) => ({
          label: title,
          stroke: colour(`--pool-${name}`),
          width: name === 'total' ? 3 : 2,
          dash: DASHES[name] ?? [],
          points: { show: false },
          paths: UPlot.paths.stepped?.({ align: 1 }) ?? (() => null),
        })),
      ],
      hooks: {
        setCursor: [({ cursor }) => look(latest.current, cursor)],
        draw: [(drawn) => markMoment(drawn, latest.current, colour('--accent')())],
      },
    },
    dataOf(latest.current.points),
    box,
  );
  const choose = () => latest.current.onChoose(chart.cursor.idx ?? -1);
  const redraw = () => recolour(chart);
  const sized = new ResizeObserver(() =>
    chart.setSize({ width: Math.max(1, box.clientWidth), height: HEIGHT }),
  );
  chart.over.addEventListener('click', choose);
  dark.addEventListener('change', redraw);
  sized.observe(box);
  function end() {
    sized.disconnect();
    dark.removeEventListener('change', redraw);
    chart.destroy();
  }
  return { chart, end };
}

/** Draws its lines anew. A chart whose first points are still to come has no scales to keep. */
function recolour(chart: UPlot): void {
  if (typeof chart.scales['x']?.min === 'number') chart.redraw();
}

/** The pointer leaves the chart with no place: what it looked at is let go. */
function look({ onLook }: ChartProps, { idx, left }: UPlot.Cursor): void {
  const isOn = left !== undefined && left >= 0 && typeof idx === 'number';
  onLook(isOn ? idx : -1);
}

/** A line at the point that is looked at, so that the keyboard sees where it is. */
function markMoment(chart: UPlot, { index, points }: ChartProps, colour: string): void {
  const point = points[index];
  if (point === undefined) return;
  const { ctx, bbox } = chart;
  const x = chart.valToPos(Date.parse(point.at) / 1000, 'x', true);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function dataOf(points: readonly Point[]): UPlot.AlignedData {
  return [
    points.map(({ at }) => Date.parse(at) / 1000),
    ...COUNTERS.map(({ name }) => points.map((point) => point[name])),
  ];
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** Times of day; days where the marks are whole days apart. */
function clockValues(_: UPlot, marks: number[], __: number, ___: number, increment: number) {
  const format = increment >= 86_400 ? day : clock;
  return marks.map((seconds) => format.format(seconds * 1000));
}
