import { isId } from '#events/subjects.ts';
import { matching, optional, wait, type Values, variable } from './parse.ts';

/** This process among those of the service. */
export type ProcessConfig = {
  /** The name of its server of browsers; null: generated and kept in the data folder. */
  serverId: string | null;
  /** Milliseconds from a signal to its end, at the latest. */
  shutdownWithinMs: number;
  /** For the timekeeper: how long any server of browsers may be away. */
  serverLostAfterMs: number;
};

/** The service's own are `srv_…`; that of a StatefulSet's Pod is its name. */
const serverId = matching(isId, 'is not 1 to 64 letters, digits, - and _');

export const processVariables = {
  SERVER_ID: variable(
    optional(serverId),
    '',
    'name by which this server finds its browsers again; empty: generated and kept in ' +
      'DATA_DIR',
  ),
  // A server's lease, which it renews as long as it lives: src/kernel/messaging/leases.ts.
  SERVER_LOST_AFTER: variable(
    wait('10s'),
    '10s',
    'for the timekeeper: sessions fail when their server is away this long; an announced ' +
      'restart may take a minute in any case',
  ),
  // Half of it is left for the reports of how the sessions ended, which are appends.
  SHUTDOWN_WITHIN: variable(
    wait('1s'),
    '9500ms',
    'longest shutdown; unfinished work, as saving a profile, is given up',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readProcess(values: Values<typeof processVariables>): ProcessConfig {
  return {
    serverId: values.SERVER_ID,
    shutdownWithinMs: values.SHUTDOWN_WITHIN,
    serverLostAfterMs: values.SERVER_LOST_AFTER,
  };
}
