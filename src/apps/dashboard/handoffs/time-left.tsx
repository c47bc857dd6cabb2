import { formatSpan, formatTime, useNow } from '../shell/time.tsx';

/** The whole seconds that are left, counted down. */
export function TimeLeft({ until }: { until: string }) {
  const leftMs = Math.max(0, Date.parse(until) - useNow());
  return (
    <time dateTime={until} title={formatTime(until)}>
      {leftMs < 1000 ? '0 s' : formatSpan(Math.floor(leftMs / 1000) * 1000)}
    </time>
  );
}
