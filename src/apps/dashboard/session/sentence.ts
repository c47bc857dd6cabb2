/** An API's sentence as the page shows it: times of the reader's clock, a capital first. */
export function readable(sentence: string, formatTime: (at: string) => string): string {
  const first = sentence.split('\n', 1)[0] ?? '';
  const timed = first.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, formatTime);
  return timed.slice(0, 1).toUpperCase() + timed.slice(1);
}

/** What the page itself is about need not be named. */
export function withoutName(summary: string): string {
  return summary.replace(/^Session \S+ of organization \S+/, 'This session');
}
