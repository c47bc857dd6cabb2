import { isId } from '#events/subjects.ts';
import { BadConfig, wait, type Read } from './parse.ts';

/** This process among those of the service. */
export type ProcessConfig = {
  /** The name of its server of browsers; null: generated and kept in the data folder. */
  serverId: string | null;
  /** Milliseconds from a signal to its end, at the latest. */
  shutdownWithinMs: number;
  /** For the timekeeper: how long any server of browsers may be away. */
  serverLostAfterMs: number;
};

export const processVariables = {
  SERVER_ID: {
    fallback: '',
    meaning:
      'name by which this server finds its browsers again; empty: generated and kept in ' +
      'DATA_DIR',
  },
  SERVER_LOST_AFTER: {
    fallback: '10s',
    meaning:
      'for the timekeeper: sessions fail when their server is away this long; an announced ' +
      'restart may take a minute in any case',
  },
  SHUTDOWN_WITHIN: {
    fallback: '9500ms',
    meaning: 'longest shutdown; unfinished work, as saving a profile, is given up',
  },
} as const;
type Name = keyof typeof processVariables;

/** A server's lease, which it renews as long as it lives: src/kernel/messaging/leases.ts. */
const LEASE_MS = 10_000;
/** Half of it is left for the reports of how the sessions ended, which are appends. */
const SHUTDOWN_MIN_MS = 1_000;

/** @throws BadConfig naming the variable that is wrong */
export function readProcess(read: Read<Name>): ProcessConfig {
  const shutdownWithinMs = wait('SHUTDOWN_WITHIN', read);
  if (shutdownWithinMs < SHUTDOWN_MIN_MS)
    throw new BadConfig(`SHUTDOWN_WITHIN: ${read('SHUTDOWN_WITHIN')} is less than 1s`);
  const serverLostAfterMs = wait('SERVER_LOST_AFTER', read);
  if (serverLostAfterMs < LEASE_MS)
    throw new BadConfig(`SERVER_LOST_AFTER: ${read('SERVER_LOST_AFTER')} is less than 10s`);
  return { serverId: readServerId(read('SERVER_ID')), shutdownWithinMs, serverLostAfterMs };
}

/** The service's own are `srv_…`; that of a StatefulSet's Pod is its name. */
function readServerId(text: string): string | null {
  if (text === '') return null;
  if (!isId(text))
    throw new BadConfig(`SERVER_ID: ${text} is not 1 to 64 letters, digits, - and _`);
  return text;
}
