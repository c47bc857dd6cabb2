import { Type, type Static } from 'typebox';
import { keptBriefly } from '#src/kernel/async/kept-briefly.ts';
import { isRejection, type Rejection } from '#src/kernel/errors.ts';
import { MOMENT_PATTERN, readMoment } from '#src/kernel/moment.ts';
import { invalid } from '../http/validation.ts';
import type { HistoryReader } from '../time-travel/history-reader.ts';
import type { PoolPoint, SeriesRange } from '../time-travel/pool-series.ts';

const HOUR_MS = 3_600_000;
const RANGE_MAX_MS = 31 * 24 * HOUR_MS;
export const POINTS_MAX = 500;
const POINTS_DEFAULT = 120;
/** How long an answer is given again to the same question. */
const KEPT_MS = 2_000;

const moment = (name: string, description: string) =>
  Type.Optional(
    Type.String({
      format: 'date-time',
      pattern: MOMENT_PATTERN,
      examples: ['2026-11-20T09:30:00.000Z'],
      description,
      refusal: (sent: unknown) =>
        invalid({ [name]: sent }, `${name} must be a time like 2026-11-20T09:30:00.000Z.`),
    }),
  );

export const PoolQuery = Type.Object(
  {
    from: moment('from', 'first point; default: an hour before `to`'),
    to: moment('to', 'up to there; default: now; at most 31 days after `from`'),
    step: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          `seconds between two points, so that there are at most ${POINTS_MAX}; ` +
          `default: ${POINTS_DEFAULT} points`,
        refusal: (step: unknown) => invalid({ step }, 'step must be a whole number of seconds.'),
      }),
    ),
  },
  { additionalProperties: false },
);

function readRange(sent: Static<typeof PoolQuery>, now: number): SeriesRange | Rejection {
  const to = readMoment(sent.to) ?? now;
  const from = readMoment(sent.from) ?? to - HOUR_MS;
  if (to > now) return invalid({ to: sent.to }, 'to is in the future.');
  if (from >= to) return invalid({ from: sent.from, to: sent.to }, 'from must be before to.');
  if (to - from > RANGE_MAX_MS)
    return invalid({ from: sent.from, to: sent.to }, 'A range is at most 31 days.');
  const stepMs = sent.step === undefined ? stepFor(to - from) : sent.step * 1000;
  if ((to - from) / stepMs >= POINTS_MAX)
    return invalid({ step: sent.step }, `There would be more than ${POINTS_MAX} points.`);
  return { from, to, stepMs };
}

/** Whole seconds, at least one. */
function stepFor(spanMs: number): number {
  return Math.max(1, Math.ceil(spanMs / POINTS_DEFAULT / 1000)) * 1000;
}

/** The pool over time as the API presents it; one answer serves the same question for 2 s. */
export function createPoolSeries(past: Pick<HistoryReader, 'pool'>, now: () => number) {
  const kept = keptBriefly<{ range: SeriesRange; points: PoolPoint[] }>(KEPT_MS);
  return async (organizationId: string | null, sent: Static<typeof PoolQuery>) => {
    const asked = readRange(sent, now());
    if (isRejection(asked)) return asked;
    const key = JSON.stringify([organizationId, sent.from, sent.to, sent.step]);
    const { range, points } = await kept(key, async () => ({
      range: asked,
      points: await past.pool(organizationId, asked),
    }));
    return {
      from: new Date(range.from).toISOString(),
      to: new Date(range.to).toISOString(),
      step_ms: range.stepMs,
      points: points.map((point) => ({ ...point, at: new Date(point.at).toISOString() })),
    };
  };
}
