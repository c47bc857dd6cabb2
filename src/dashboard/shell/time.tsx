import { useEffect, useState } from 'preact/hooks';

/** A time of the API as people read it; the exact one on hover. `–` for none. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function formatTime(at: string): string {
  return day.format(new Date(at));
}

/** `2 h 5 min`, `1.25 s`, `40 ms`: from the two largest units. */
export function formatSpan(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.round(ms / 10) / 100} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1000);
  if (minutes < 60) return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
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
  return clock.format(new Date(at));
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
});
