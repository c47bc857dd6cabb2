import { useEffect, useState } from 'preact/hooks';

export { formatSpan } from './span.ts';

/** A time of the API as people read it; the exact one on hover. `–` for none. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}

/** Made at the first use: it takes ten milliseconds, in which the first page would not be there. */
let day: Intl.DateTimeFormat | undefined;
let clock: Intl.DateTimeFormat | undefined;

export function formatTime(at: string): string {
  day ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return day.format(new Date(at));
}

/** The time in milliseconds, told again at each interval. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** `09:30:00.041`: the time of day, to the millisecond. */
export function formatClock(at: string): string {
  clock ??= new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hourCycle: 'h23',
  });
  return clock.format(new Date(at));
}
