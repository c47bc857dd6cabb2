import type { BrowserOptions } from '#events/session.ts';
import type { TerminationReason, WorkloadEvent, WorkloadState } from '#events/workload.ts';

/** Reports of a provisioner about one of its browsers. */
export type WorkloadCommand =
  | { type: 'Provision'; serverId: string; browser?: BrowserOptions }
  | { type: 'Launch' }
  | { type: 'ReportIdle'; launchMs: number }
  | { type: 'Assign'; organizationId: string; sessionId: string }
  | { type: 'Terminate'; reason: TerminationReason }
  | { type: 'ReportTerminated'; reason: TerminationReason; exitCode: number | null };

/**
 * provisioning → launching → idle → busy → terminating → terminated; every state may also change
 * directly to terminating or terminated. A report that is older than the recorded state changes
 * nothing.
 */
export function decideWorkload(
  command: WorkloadCommand,
  workload: WorkloadState | null,
): WorkloadEvent[] {
  if (command.type === 'Provision') {
    const { type: _, ...data } = command;
    return workload === null ? [{ type: 'workload.provisioning', data }] : [];
  }
  if (workload === null || workload.status === 'terminated') return [];
  switch (command.type) {
    case 'Launch':
      return workload.status === 'provisioning' ? [{ type: 'workload.launching', data: {} }] : [];
    case 'ReportIdle':
      return workload.status === 'launching'
        ? [{ type: 'workload.idle', data: { launchMs: command.launchMs } }]
        : [];
    case 'Assign': {
      const { organizationId, sessionId } = command;
      return workload.status === 'idle'
        ? [{ type: 'workload.assigned', data: { organizationId, sessionId } }]
        : [];
    }
    case 'Terminate':
      return workload.status === 'terminating'
        ? []
        : [{ type: 'workload.terminating', data: { reason: command.reason } }];
    case 'ReportTerminated': {
      const { reason, exitCode } = command;
      return [{ type: 'workload.terminated', data: { reason, exitCode } }];
    }
  }
}

/** @throws RangeError for an event before `provisioning`, which no valid history contains. */
export function evolveWorkload(
  workload: WorkloadState | null,
  event: WorkloadEvent,
  id: string,
): WorkloadState {
  if (event.type === 'workload.provisioning')
    return { id, ...event.data, status: 'provisioning', organizationId: null, sessionId: null };
  if (workload === null)
    throw new RangeError(`${event.type} before workload.provisioning: the history is incomplete`);
  switch (event.type) {
    case 'workload.launching':
      return { ...workload, status: 'launching' };
    case 'workload.idle':
      return { ...workload, status: 'idle' };
    case 'workload.assigned':
      return { ...workload, status: 'busy', ...event.data };
    case 'workload.terminating':
      return { ...workload, status: 'terminating' };
    case 'workload.terminated':
      return { ...workload, status: 'terminated' };
    case 'workload.carried-forward':
      return workload;
  }
}
