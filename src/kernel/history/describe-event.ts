import type { EgressTraffic } from '#events/egress.ts';
import type { BlackBox } from '#events/session/black-box.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { FileRefusal } from '#events/session/files.ts';
import type { SessionEvent, StopReason } from '#events/session.ts';
import type { WorkloadEvent } from '#events/workload.ts';
import { describeBlackBox } from './describe-black-box.ts';
import { formatDuration } from './elapsed.ts';

/**
 * The event as a sentence about the session. The last lines of a browser's output follow it, on
 * lines of their own.
 */
export function describeEvent(event: RecordedEvent): string {
  switch (event.aggregate.kind) {
    case 'session':
      return describeSessionEvent(event as SessionEvent);
    case 'workload':
      return describeWorkloadEvent(event as WorkloadEvent, event.aggregate.id);
    default:
      return describeOtherEvent(event);
  }
}

const stopReasons: Record<StopReason, string> = {
  user: 'a user requested its stop',
  expired: 'its stop was requested because it expired',
  idle: 'its stop was requested because it was unused for its idle timeout',
  organization: 'its stop was requested on behalf of the organization',
  operator: 'its stop was requested by an operator, or because its server was shutting down',
  browser_closed: 'its user closed the browser',
};

function describeSessionEvent(event: SessionEvent): string {
  switch (event.type) {
    case 'session.requested': {
      const { name, expiresAt, creditsReserved } = event.data;
      return `session "${name}" was requested until ${expiresAt} (${creditsReserved} credits)`;
    }
    case 'session.queued':
      return 'no server took it in time, so it was queued';
    case 'session.assigned': {
      const { serverId, workloadId } = event.data;
      return `server ${serverId} took it and began to launch browser ${workloadId}`;
    }
    case 'session.requeued':
      return `server ${event.data.serverId} gave it back: ${event.data.detail}`;
    case 'session.activated': {
      const { workloadId, serverId } = event.data.workload;
      return `it got browser ${workloadId} of server ${serverId}`;
    }
    case 'session.extended':
      return `it was extended by ${formatDuration(event.data.byMs)}, until ${event.data.expiresAt}`;
    case 'session.accessed':
      return `it was used over ${event.data.via}`;
    case 'session.access-rotated':
      return 'its addresses were replaced, and connections with the old ones were closed';
    case 'session.expiry-warning':
      return `a warning was sent that it expires at ${event.data.expiresAt}`;
    case 'session.updated':
      return `its ${Object.keys(event.data).join(', ') || 'attributes'} changed`;
    case 'session.handoff-requested':
    case 'session.handoff-taken':
    case 'session.handoff-completed':
    case 'session.handoff-expired':
      return describeHandoff(event);
    case 'session.share-created': {
      const { by, mode, expiresAt } = event.data;
      return `${by} shared its screen (${mode}) until ${expiresAt}`;
    }
    case 'session.share-used':
      return `its screen was opened by share ${event.data.shareId}`;
    case 'session.share-revoked':
      return `${event.data.by} revoked share ${event.data.shareId}`;
    case 'session.egress-recorded':
      return describeTraffic(event.data);
    case 'session.recording-stored':
      return describeRecording(event.data);
    case 'session.file-added':
    case 'session.file-removed':
    case 'session.file-refused':
      return describeFile(event);
    case 'session.profile-save-requested':
    case 'session.profile-saved':
    case 'session.profile-not-saved':
      return describeProfile(event);
    case 'session.stop-requested': {
      const { reason, note } = event.data;
      return note === undefined ? stopReasons[reason] : `${stopReasons[reason]}: ${note}`;
    }
    case 'session.stopped':
      return withBlackBox(`it stopped; ${describeSettlement(event.data)}`, event.data);
    case 'session.failed': {
      const { reason, detail, exitCode } = event.data;
      const code = exitCode === null ? '' : `, exit code ${exitCode}`;
      const failed = `it failed with ${reason}${code} (${describeSettlement(event.data)})`;
      return withBlackBox(`${failed}: ${detail}`, event.data);
    }
    case 'session.carried-forward':
      return describeCarried('the session', event.data);
  }
}

/** The host with the most refusals is named: that is what somebody looks for. */
function describeTraffic({ hosts, others }: EgressTraffic): string {
  const sum = (count: keyof EgressTraffic['others']) =>
    hosts.reduce((total, host) => total + host[count], others[count]);
  const [worst] = hosts.toSorted((a, b) => b.refused - a.refused);
  const reason = worst?.lastRefusal === undefined ? '' : `, ${worst.lastRefusal}`;
  const mostly =
    worst === undefined || worst.refused === 0 ? '' : ` (${worst.host}: ${worst.refused}${reason})`;
  return (
    `its browser made ${sum('connections')} connections, sent ${sum('bytesSent')} bytes and ` +
    `received ${sum('bytesReceived')}; ${sum('refused')} were refused${mostly}`
  );
}

function describeRecording({
  segments,
  gaps,
}: Extract<SessionEvent, { type: 'session.recording-stored' }>['data']): string {
  const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  const count = segments.length === 1 ? '1 segment' : `${segments.length} segments`;
  const stored = segments.length === 0 ? [] : [`${count} of its recording (${bytes} bytes)`];
  const missing = gaps.map(({ from, until, reason }) =>
    until === undefined
      ? `the recording ended at ${from} (${reason})`
      : `nothing was recorded from ${from} until ${until} (${reason})`,
  );
  const what = stored.length === 0 ? [] : [`${stored[0]} were stored`];
  return [...what, ...missing].join('; ') || `its recording is complete until then`;
}

/** What the browser told follows on lines of its own. */
function withBlackBox(sentence: string, { blackBox }: { blackBox?: BlackBox }): string {
  return [sentence, ...describeBlackBox(blackBox)].join('\n');
}

function describeProfile(
  event: Extract<SessionEvent, { type: `session.profile-${string}` }>,
): string {
  const { profileId } = event.data;
  if (event.type === 'session.profile-save-requested')
    return `a save of profile ${profileId} was requested`;
  if (event.type === 'session.profile-saved')
    return `it saved version ${event.data.version} of profile ${profileId}`;
  return `it did not save profile ${profileId} (${event.data.reason}): ${event.data.detail}`;
}

function describeHandoff(
  event: Extract<SessionEvent, { type: `session.handoff-${string}` }>,
): string {
  switch (event.type) {
    case 'session.handoff-requested':
      return `its automation asked a person for help: ${event.data.instructions}`;
    case 'session.handoff-taken':
      return `${event.data.by} took the hand-off and steered the browser`;
    case 'session.handoff-completed': {
      const { by, success, note } = event.data;
      const said = note === '' ? '' : `: ${note}`;
      return `${by} gave the browser back (${success ? 'done' : 'not done'})${said}`;
    }
    case 'session.handoff-expired':
      return 'its hand-off expired, and the automation went on';
  }
}

const refusals: Record<FileRefusal, string> = {
  too_large: 'it is larger than a file may be',
  quota: 'the session’s files are as many or as large as they may be',
  name: 'it has no usable name',
  failed: 'it was cancelled, broke off, or could not be stored',
};

function describeFile(event: Extract<SessionEvent, { type: `session.file-${string}` }>): string {
  const { name } = event.data;
  switch (event.type) {
    case 'session.file-added': {
      const { bytes, origin } = event.data;
      return `file "${name}" (${bytes} bytes) was ${origin}ed`;
    }
    case 'session.file-removed':
      return `file "${name}" was removed`;
    case 'session.file-refused': {
      const { origin, reason } = event.data;
      return `the ${origin} of "${name}" was refused: ${refusals[reason]}`;
    }
  }
}

function describeWorkloadEvent(event: WorkloadEvent, id: string): string {
  switch (event.type) {
    case 'workload.provisioning':
      return `server ${event.data.serverId} decided to launch browser ${id}`;
    case 'workload.launching':
      return `browser ${id} was being launched`;
    case 'workload.idle':
      return `browser ${id} was ready after ${formatDuration(event.data.launchMs)}`;
    case 'workload.assigned':
      return `browser ${id} was assigned to the session`;
    case 'workload.terminating':
      return `browser ${id} was being terminated (${event.data.reason})`;
    case 'workload.terminated': {
      const { reason, exitCode } = event.data;
      const code = exitCode === null ? '' : `, exit code ${exitCode}`;
      return `browser ${id} ended (${reason}${code})`;
    }
    case 'workload.carried-forward':
      return describeCarried(`browser ${id}`, event.data);
  }
}

function describeOtherEvent(event: RecordedEvent): string {
  const server = event.aggregate.kind === 'server' ? event.aggregate.id : '';
  switch (event.type) {
    case 'archive.sealed':
      return `the archive ends with event ${event.data.lastSequence}`;
    case 'ledger.slot-reserved':
      return `a slot and ${event.data.credits} credits were reserved`;
    case 'ledger.credits-reserved':
      return `${event.data.credits} more credits were reserved`;
    case 'ledger.slot-released':
      return `the slot was released; ${describeSettlement(event.data)}`;
    case 'organization.sessions-stop-requested': {
      const { by, sessions, note } = event.data;
      const what = sessions === 1 ? 'the one session that matched' : `${sessions} sessions at once`;
      return `${by} stopped ${what}${note === undefined ? '' : `: ${note}`}`;
    }
    case 'server.joined':
      return `server ${server} joined`;
    case 'server.draining':
      return `server ${server} was drained: it takes no new sessions`;
    case 'server.restarting':
      return `server ${server} shut down for a restart`;
    case 'server.left':
      return `server ${server} left`;
    case 'server.lost':
      return `server ${server} was lost: it did not renew its lease`;
    case 'server.carried-forward':
      return describeCarried(`server ${server}`, event.data);
    default:
      return event.type;
  }
}

function describeCarried(what: string, { archivedUpTo }: { archivedUpTo: number }): string {
  return `the state of ${what} was carried forward: events up to ${archivedUpTo} are archived`;
}

function describeSettlement({ creditsUsed, creditsRefunded }: Settled): string {
  return `credits used: ${creditsUsed}, refunded: ${creditsRefunded}`;
}
type Settled = { creditsUsed: number; creditsRefunded: number };
