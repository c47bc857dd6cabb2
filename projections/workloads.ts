import { isOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { WorkloadState } from '#events/workload.ts';
import type { Projection } from './projection.ts';

type WorkloadStatus = WorkloadState['status'];

/**
 * All workloads (browsers) from launch to termination; the view is removed then. The pool's
 * counters are the sizes of its lists.
 */
export const workloads: Projection<WorkloadState> = {
  name: 'workloads',
  version: 1,
  subjects: filters.fleet,
  key(event) {
    return isOf('workload', event) ? event.aggregate.id : null;
  },
  aggregateOf: (id) => ({ kind: 'workload', id }),
  view(event) {
    if (!isOf('workload', event)) return null;
    return event.state.status === 'terminated' ? null : event.state;
  },
  /**
   * Ordered by last event: the longest idle workload is at the low end, until its state is carried
   * forward. The pool assigns by its own roster, not by this order.
   */
  lists(view, event) {
    const names = [allWorkloads, workloadsInStatus(view.status), workloadsOnServer(view.serverId)];
    return { names, order: event.sequence };
  },
};

export const allWorkloads = 'all';

export function workloadsInStatus(status: WorkloadStatus): string {
  return `status/${status}`;
}

export function workloadsOnServer(serverId: string): string {
  return `server/${serverId}`;
}
