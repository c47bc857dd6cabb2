import type { RecordedEvent } from '#events/events.ts';
import type { SessionEvent, StopReason } from '#events/session.ts';
import type { WorkloadEvent } from '#events/workload.ts';
import { lengthOf } from '../../output.ts';

/**
 * What an event says, in a sentence without its subject's id. A browser's last words follow it, on
 * lines of their own.
 */
export function inWords(event: RecordedEvent): string {
  switch (event.aggregate.kind) {
    case 'session':
      return sessionWords(event as SessionEvent);
    case 'workload':
      return workloadWords(event as WorkloadEvent, event.aggregate.id);
    default:
      return otherWords(event);
  }
}

const stopWords: Record<StopReason, string> = {
  user: 'its stop was asked for by its user',
  expired: 'its stop was asked for because its time was up',
  idle: 'its stop was asked for because nobody had used it for its idle time-out',
  organization: 'its stop was asked for on the organization’s behalf',
  operator: 'its stop was asked for by an operator, or because its server was ending',
  browser_closed: 'its user closed its browser',
};

function sessionWords(event: SessionEvent): string {
  switch (event.type) {
    case 'session.requested': {
      const { name, expiresAt, creditsReserved } = event.data;
      return `the session "${name}" was asked for, until ${expiresAt} (${creditsReserved} credits)`;
    }
    case 'session.queued':
      return 'no server took it in time: it waited in the queue';
    case 'session.assigned':
      return `server ${event.data.serverId} took it, to launch browser ${event.data.workloadId}`;
    case 'session.requeued':
      return `server ${event.data.serverId} gave it back: ${event.data.detail}`;
    case 'session.activated': {
      const { workloadId, serverId } = event.data.workload;
      return `it got browser ${workloadId} of server ${serverId}`;
    }
    case 'session.extended':
      return `it was extended by ${lengthOf(event.data.byMs)}, until ${event.data.expiresAt}`;
    case 'session.accessed':
      return `it was used by way of ${event.data.via}`;
    case 'session.expiry-warning':
      return `it was warned that it would end at ${event.data.expiresAt}`;
    case 'session.stop-requested':
      return stopWords[event.data.reason];
    case 'session.stopped':
      return `it stopped; ${settled(event.data)}`;
    case 'session.failed': {
      const { reason, detail, exitCode } = event.data;
      const code = exitCode === null ? '' : `, exit code ${exitCode}`;
      return `it failed with ${reason}${code} (${settled(event.data)}): ${detail}`;
    }
  }
}

function workloadWords(event: WorkloadEvent, id: string): string {
  switch (event.type) {
    case 'workload.provisioning':
      return `server ${event.data.serverId} decided to launch browser ${id}`;
    case 'workload.launching':
      return `browser ${id} was being launched`;
    case 'workload.idle':
      return `browser ${id} answered, after ${lengthOf(event.data.launchMs)}`;
    case 'workload.assigned':
      return `browser ${id} was given to the session`;
    case 'workload.terminating':
      return `browser ${id} was being ended (${event.data.reason})`;
    case 'workload.terminated': {
      const { reason, exitCode } = event.data;
      const code = exitCode === null ? '' : `, exit code ${exitCode}`;
      return `browser ${id} was gone (${reason}${code})`;
    }
  }
}

function otherWords(event: RecordedEvent): string {
  const server = event.aggregate.kind === 'server' ? event.aggregate.id : '';
  switch (event.type) {
    case 'ledger.slot-reserved':
      return `a slot and ${event.data.credits} credits were reserved`;
    case 'ledger.credits-reserved':
      return `${event.data.credits} more credits were reserved`;
    case 'ledger.slot-released':
      return `the slot came back; ${settled(event.data)}`;
    case 'server.joined':
      return `server ${server} joined`;
    case 'server.draining':
      return `server ${server} was told to take nothing new`;
    case 'server.restarting':
      return `server ${server} ended, to be back`;
    case 'server.left':
      return `server ${server} left`;
    case 'server.lost':
      return `server ${server} was lost: it did not renew its lease`;
    default:
      return event.type;
  }
}

function settled({ creditsUsed, creditsRefunded }: Settled): string {
  return `credits used: ${creditsUsed}, given back: ${creditsRefunded}`;
}
type Settled = { creditsUsed: number; creditsRefunded: number };
