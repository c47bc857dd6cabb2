import type { EventMetadata } from '#events/envelope.ts';
import { isRejection, Unavailable, WrittenByNewer, type Rejection } from '#src/kernel/errors.ts';
import { doubling, retry } from '#src/kernel/async/retry.ts';
import { decideServer, type ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { decideWorkload, type WorkloadCommand } from '#src/kernel/domain/fleet/workload.ts';
import {
  handleCommand,
  type CommandContext,
  type CommandResult,
} from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { recordSavedProfile, type SavedProfile } from '#src/commands/session-profile.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** Pause between attempts while the event store is unavailable: 100 ms, doubled, 2 s at most. */
const pauseMs = doubling(100, 2_000);

/**
 * Appends what has happened on this server. These are facts, so a report is retried while the event
 * store is unavailable, until it is appended or the process ends; then the reconciliation of the
 * next start finds the difference. One that was stored without an answer is not appended again.
 */
export type Reporter = {
  /** @throws Error where the command is rejected or the stream cannot be read */
  workload(workloadId: string, command: WorkloadCommand, metadata: EventMetadata): Promise<void>;
  /**
   * Reports on a browser of the pool after its earlier reports. Resolves once it is appended or has
   * failed; a failure is logged.
   */
  queue(browser: ReportQueue, command: WorkloadCommand, metadata: EventMetadata): Promise<void>;
  /** @throws Error where the command is rejected or the stream cannot be read */
  server(
    serverId: string,
    command: ServerCommand,
    metadata: EventMetadata,
  ): Promise<CommandResult<'server'>>;
  /**
   * @throws Error where the stream cannot be read; WrittenByNewer where the command claims the
   * session for this server: AssignSession, ActivateSession
   */
  session(
    identity: SessionIdentity,
    command: SessionCommand,
    metadata: EventMetadata,
  ): Promise<CommandResult<'session'> | Rejection>;
  /** @throws Error where an aggregate cannot be read */
  profile(
    identity: SessionIdentity,
    saved: SavedProfile,
    metadata: EventMetadata,
  ): Promise<CommandResult<'session'> | Rejection>;
};

/** A workload and the end of its last report, which the next one waits for. */
export type ReportQueue = { readonly workloadId: string; reports: Promise<void> };

/** @param signal aborts when the process gives up on its reports */
export function createReporter(
  context: CommandContext,
  log: Logger,
  signal: AbortSignal,
): Reporter {
  const { withRetry, claim } = retries(context, log, signal);
  async function workload(
    id: string,
    command: WorkloadCommand,
    metadata: EventMetadata,
  ): Promise<void> {
    const aggregate = { kind: 'workload', id } as const;
    const handled = await withRetry((attempt) =>
      handleCommand<'workload'>(
        attempt,
        aggregate,
        (state) => decideWorkload(command, state),
        metadata,
      ),
    );
    if (isRejection(handled)) throw new Error(`${command.type}: ${handled.code}`);
  }
  return {
    workload,
    queue(browser, command, metadata) {
      const { workloadId } = browser;
      browser.reports = browser.reports
        .then(() => workload(workloadId, command, metadata))
        .catch((error: unknown) =>
          log.error(
            { err: error, workloadId, command: command.type },
            'failed to report on a browser',
          ),
        );
      return browser.reports;
    },
    async server(id, command, metadata) {
      const aggregate = { kind: 'server', id } as const;
      const handled = await withRetry((attempt) =>
        handleCommand<'server'>(
          attempt,
          aggregate,
          (server) => decideServer(command, server),
          metadata,
        ),
      );
      if (isRejection(handled)) throw new Error(`${command.type}: ${handled.code}`);
      return handled;
    },
    session(identity, command, metadata) {
      const isClaim = command.type === 'AssignSession' || command.type === 'ActivateSession';
      const append = isClaim ? claim : withRetry;
      return append((attempt) => handleSessionCommand(attempt, identity, command, metadata));
    },
    profile: (...saved) => withRetry((attempt) => recordSavedProfile(attempt, ...saved)),
  };
}

/** What runs an append, and runs it again while the event store is unavailable. */
function retries(context: CommandContext, log: Logger, signal: AbortSignal) {
  type Append<Result> = (attempt: CommandContext) => Promise<Result>;
  const options = {
    pauseMs,
    isTransient: (error: unknown) => error instanceof Unavailable && !signal.aborted,
    onRetry: (error: unknown) =>
      log.debug({ err: error }, 'event store unavailable; the report is retried'),
    signal,
  };
  const run =
    <Result>(append: Append<Result>) =>
    (count: number) =>
      append(count === 1 ? context : { ...context, isRepeated: true });
  const withRetry = <Result>(append: Append<Result>) => retry(options, run(append));
  /** A claim is no fact: where only a newer version can read the session, that one claims it. */
  function claim<Result>(append: Append<Result>): Promise<Result> {
    const isTransient = (error: unknown) =>
      options.isTransient(error) && !(error instanceof WrittenByNewer);
    return retry({ ...options, isTransient }, run(append));
  }
  return { withRetry, claim };
}
