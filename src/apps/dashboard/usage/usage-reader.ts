import { useEffect, useRef, useState } from 'preact/hooks';
import { eachOf } from '../sessions/bounded.ts';
import { read, RequestFailed, sentenceOf } from '../api/api-client.ts';
import { partsOf, type Range } from './ranges.ts';

/** Traffic of browsers whose sessions have egress rules. */
export type UsageEgress = { bytes_sent: number; bytes_received: number; refused: number };

export type UsageLine = {
  session_id: string;
  session_name: string;
  user_id: string;
  ended_at: string | null;
  ended_reason: string | null;
  minutes: number;
  credits_used: number;
  credits_refunded: number;
  egress: UsageEgress | null;
  events: { sequence: number; type: string }[];
};

/** Of GET /api/usage. */
export type Usage = {
  totals: { sessions: number; minutes: number; credits: number; egress: UsageEgress };
  open: { sessions: number; credits_reserved: number };
  lines: UsageLine[];
  pagination: { next: string | null };
};

export type Bar = Range & { minutes: number; sessions: number };

const AT_ONCE = 4;
const RETRY_MS = 3000;
/** What was used so long ago is settled: a session is billed moments after its end. */
const SETTLED_MS = 3_600_000;

export function usagePath(range: Range, limit: number, after: string | null = null): string {
  const query = new URLSearchParams({ ...range, limit: `${limit}` });
  if (after !== null) query.set('after', after);
  return `/api/usage?${query.toString()}`;
}

/**
 * The totals of each part of the range that had usage. When `again` changes, the parts that may
 * have changed are read again.
 */
export function useBars({ from, to }: Range, again: unknown) {
  const [bars, setBars] = useState<{ data: Bar[] | null; failure: string | null }>({
    data: null,
    failure: null,
  });
  const settled = useRef(new Map<string, Bar>());
  useEffect(() => {
    const stop = new AbortController();
    let retry: ReturnType<typeof setTimeout> | undefined;
    async function load() {
      const found: Bar[] = [];
      const failures: unknown[] = [];
      await eachOf(partsOf({ from, to }), AT_ONCE, async (part) => {
        if (failures.length > 0) return;
        try {
          const bar = settled.current.get(keyOf(part)) ?? (await readBar(part, stop.signal));
          if (Date.parse(part.to) < Date.now() - SETTLED_MS) settled.current.set(keyOf(part), bar);
          if (bar.sessions > 0) found.push(bar);
        } catch (error) {
          failures.push(error);
        }
      });
      if (stop.signal.aborted) return;
      const [error] = failures;
      if (error === undefined) {
        found.sort((a, b) => a.from.localeCompare(b.from));
        setBars({ data: found, failure: null });
        return;
      }
      setBars(({ data }) => ({ data, failure: sentenceOf(error) }));
      if (!(error instanceof RequestFailed) || !error.isTransient) return;
      retry = setTimeout(() => void load(), error.retryAfterMs ?? RETRY_MS);
    }
    void load();
    return () => {
      clearTimeout(retry);
      stop.abort();
    };
  }, [from, to.slice(0, 16), again]);
  return bars;
}

const keyOf = ({ from, to }: Range) => `${from} ${to}`;

async function readBar(part: Range, signal: AbortSignal): Promise<Bar> {
  const { totals } = await read<Usage>(usagePath(part, 1), signal);
  return { ...part, minutes: totals.minutes, sessions: totals.sessions };
}
