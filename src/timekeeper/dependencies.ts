import type { Views } from '#projections/store/views.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import type { Leases } from '#src/messaging/leases.ts';
import type { Timers } from '#src/messaging/timers.ts';
import type { Log } from '#src/telemetry/logger.ts';

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
