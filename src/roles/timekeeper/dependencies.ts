import type { Views } from '#projections/store/views.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import type { McpSessions } from '#src/kernel/messaging/mcp-sessions.ts';
import type { Timers } from '#src/kernel/messaging/timers.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** The dependencies of the timekeeper. */
export type TimekeeperDependencies = {
  context: CommandContext;
  openWorkQueue: OpenWorkQueue;
  timers: Timers;
  leases: Leases;
  views: Views;
  /** A server whose lease is missing so long, with the lease's own time, counts as lost. */
  lostAfterMs: number;
  /** The MCP sessions, and how long their clients may be away: lost-clients.ts. */
  mcp: { sessions: McpSessions; graceMs: number; silenceMs: number };
  queue: { afterMs: number; timeoutMs: number };
  /** Calls the listener whenever the event store is available again; returns the unsubscriber. */
  onLogReconnect: (listener: () => void) => () => void;
  log: Logger;
};
