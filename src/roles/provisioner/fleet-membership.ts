import type { LaunchedBuild } from '#events/server.ts';
import type { CommandResult } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Browsers } from '#src/browsers/browsers.ts';
import type { Reconciled } from './reconcile/reconcile.ts';
import type { Reporter } from '#src/commands/reporter.ts';

/** What a server tells the fleet of itself: its lease, and the commands on its own aggregate. */

/** The server's lease; disposing releases it. */
export type Lease = {
  /** Ends the renewal without releasing the lease. */
  stopRenewing: () => void;
} & AsyncDisposable;

/** Takes the server's lease and renews it until it is disposed of. */
export async function holdLease(leases: Leases, serverId: string, log: Logger): Promise<Lease> {
  await leases.renew(serverId);
  const beat = setInterval(() => {
    leases
      .renew(serverId)
      .catch((error: unknown) => log.warn({ err: error }, 'failed to renew the server lease'));
  }, LEASE_MS / 3);
  return {
    stopRenewing: () => clearInterval(beat),
    async [Symbol.asyncDispose]() {
      clearInterval(beat);
      await leases.release(serverId).catch(() => undefined);
    },
  };
}

/** Reports of this server to its aggregate. */
export type ReportServer = (command: ServerCommand) => Promise<CommandResult<'server'>>;

export function createServerReporter(reporter: Reporter, serverId: string): ReportServer {
  return (command) => reporter.server(serverId, command, newMetadata(`provisioner/${serverId}`));
}

/** Reports a reconciliation if it is the first, corrected something, or changed the leaks. */
export function createReconcileReporter(
  report: ReportServer,
): (reconciled: Reconciled) => Promise<void> {
  let reported = '';
  return async (reconciled) => {
    const { adopted, stopped, failed, corrected, leaks } = reconciled;
    const found = `${leaks.browsers} ${leaks.sessions}`;
    if (adopted + stopped + failed + corrected === 0 && found === reported) return;
    await report({ type: 'ReportReconciled', ...reconciled });
    reported = found;
  };
}

/** What a server says when it joins the fleet. */
export function joinCommand(ip: string, browsers: Browsers, poolMax: number): ServerCommand {
  const { kind } = browsers;
  const browser = buildOf(browsers);
  const egress = browsers.egress === undefined ? {} : { egress: browsers.egress };
  return { type: 'Join', ip, browsers: kind, poolMax, browser, ...egress };
}

function buildOf(browsers: Browsers): LaunchedBuild {
  const { version, builtAt } = browsers.build();
  return { version, ...(builtAt !== null && { builtAt: new Date(builtAt).toISOString() }) };
}

/** Reports each newer build; the next start's `joined` tells one whose report failed. */
export function reportBuilds(browsers: Browsers, report: ReportServer, log: Logger): void {
  browsers.onBuild?.(() => {
    const build = { ...buildOf(browsers), egress: browsers.egress ?? null };
    log.info({ ...build }, 'new browsers are launched from another build');
    report({ type: 'UpdateBrowser', ...build }).catch((error: unknown) =>
      log.warn({ err: error, ...build }, 'failed to report the new build of the browsers'),
    );
  });
}
