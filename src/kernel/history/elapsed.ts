/** `+12ms`, `+3.4s`, `+2m05s`, `+1h02m`: the time between two ISO 8601 times. */
export function formatElapsed(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  return `${ms < 0 ? '-' : '+'}${formatDuration(Math.abs(ms))}`;
}

/** `12ms`, `3.4s`, `2m05s`, `1h02m`. */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (ms < 1000) return `${ms}ms`;
  if (minutes === 0) return `${(ms / 1000).toFixed(1)}s`;
  if (minutes < 60) return `${minutes}m${two(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
