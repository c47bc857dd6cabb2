import type { Views } from '#projections/views.ts';
import type { Desk } from '../log/handle.ts';
import type { Leases } from '../log/leases.ts';
import type { Timers } from '../log/timers.ts';
import type { Log } from '../telemetry/log.ts';

/** What a timekeeper is made of. */
export type TimekeeperParts = {
  desk: Desk;
  timers: Timers;
  leases: Leases;
  views: Views;
  queue: { afterMs: number; timeoutMs: number };
  /** Calls the listener whenever the log is back, until the function it returns is called. */
  onLogReconnect: (listener: () => void) => () => void;
  log: Log;
};
