import type { Route } from './route.ts';

/** Statuses by route, and how many requests of each route succeeded. */
export type Tally = {
  count(route: Route, status: string): void;
  succeeded(route: Route): void;
  /** Routes that succeeded less often than `least` times. */
  short(routes: readonly Route[], least: number): string[];
  text(): string;
};

export function createTally(): Tally {
  const statuses = new Map<string, Map<string, number>>();
  const successes = new Map<string, number>();
  return {
    count({ name }, status) {
      const row = statuses.get(name) ?? new Map<string, number>();
      statuses.set(name, row.set(status, (row.get(status) ?? 0) + 1));
    },
    succeeded: ({ name }) => void successes.set(name, (successes.get(name) ?? 0) + 1),
    short: (routes, least) =>
      routes
        .filter(({ name, success }) => success !== 'none' && (successes.get(name) ?? 0) < least)
        .map(({ name }) => `${name}: ${successes.get(name) ?? 0}`),
    text: () =>
      [...statuses]
        .map(([name, row]) => {
          const all = [...row].toSorted().map(([status, times]) => `${status}×${times}`);
          return `${name}: ${all.join(' ')}`;
        })
        .toSorted()
        .join('\n'),
  };
}
