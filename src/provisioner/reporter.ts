import { setTimeout as pause } from 'node:timers/promises';
import type { Cause } from '#events/envelope.ts';
import { isRejected, Unavailable, type Rejected } from '#src/errors.ts';
import { decideServer, type ServerCommand } from '#src/domain/fleet/server.ts';
import { decideWorkload, type WorkloadCommand } from '#src/domain/fleet/workload.ts';
import { handle, type Desk, type Handled } from '#src/commands/handle-command.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { SessionCommand } from '#src/domain/session/commands.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import type { Log } from '#src/telemetry/logger.ts';

/** Pause between tries while the log is away: 100 ms, doubled, 2 s at most. */
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;

/**
 * Tells the log what has happened here. What has happened does not unhappen, so while the log is
 * away a report waits and is tried again until it is told or the process ends (then the next
 * start's comparison finds the difference).
 */
export type Reporter = {
  workload(workloadId: string, command: WorkloadCommand, cause: Cause): Promise<void>;
  server(serverId: string, command: ServerCommand, cause: Cause): Promise<Handled<'server'>>;
  session(
    identity: SessionIdentity,
    command: SessionCommand,
    cause: Cause,
  ): Promise<Handled<'session'> | Rejected>;
};

/** @param signal aborts when the process gives up on telling */
export function createReporter(desk: Desk, log: Log, signal: AbortSignal): Reporter {
  async function told<Result>(tell: () => Promise<Result>): Promise<Result> {
    for (let waitMs = PAUSE_MIN_MS; ; waitMs = Math.min(2 * waitMs, PAUSE_MAX_MS)) {
      try {
        return await tell();
      } catch (error) {
        if (!(error instanceof Unavailable) || signal.aborted) throw error;
        log.debug({ err: error }, 'the log is away; the report waits');
        await pause(waitMs, undefined, { signal });
      }
    }
  }
  return {
    async workload(id, command, cause) {
      const aggregate = { kind: 'workload', id } as const;
      const handled = await told(() =>
        handle<'workload'>(desk, aggregate, (workload) => decideWorkload(command, workload), cause),
      );
      if (isRejected(handled)) throw new Error(`${command.type}: ${handled.rejected}`);
    },
    async server(id, command, cause) {
      const aggregate = { kind: 'server', id } as const;
      const handled = await told(() =>
        handle<'server'>(desk, aggregate, (server) => decideServer(command, server), cause),
      );
      if (isRejected(handled)) throw new Error(`${command.type}: ${handled.rejected}`);
      return handled;
    },
    session: (identity, command, cause) =>
      told(() => handleSession(desk, identity, command, cause)),
  };
}
