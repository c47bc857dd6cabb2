import { BadConfig, wait, type Read } from './parse.ts';

/** This process itself. */
export type ProcessConfig = {
  /** Milliseconds from a signal to its end, at the latest. */
  shutdownWithinMs: number;
};

export const processVariables = {
  SHUTDOWN_WITHIN: {
    fallback: '9500ms',
    meaning: 'longest shutdown; what has not ended by then, as a save of a profile, is given up',
  },
} as const;
type Name = keyof typeof processVariables;

/** Half of it is left for the reports of how the sessions ended, which are appends. */
const SHUTDOWN_MIN_MS = 1_000;

/** @throws BadConfig naming the variable that is wrong */
export function readProcess(read: Read<Name>): ProcessConfig {
  const shutdownWithinMs = wait('SHUTDOWN_WITHIN', read);
  if (shutdownWithinMs < SHUTDOWN_MIN_MS)
    throw new BadConfig(`SHUTDOWN_WITHIN: ${read('SHUTDOWN_WITHIN')} is less than 1s`);
  return { shutdownWithinMs };
}
