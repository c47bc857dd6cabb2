import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the seconds of each test file are kept; `UPDATE_DURATIONS=1` records those of a run. */
export const DURATIONS_FILE = 'test/durations.json';

/** Seconds by path from the top of the project; files that take less than one are left out. */
export type Durations = Readonly<Record<string, number>>;

export function readDurations(root: string): Durations {
  const path = join(root, DURATIONS_FILE);
  if (!existsSync(path)) return {};
  return JSON.parse(readFileSync(path, 'utf8')) as Durations;
}
