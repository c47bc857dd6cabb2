import { isOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { WorkloadState } from '#events/workload.ts';
import type { Projection } from './projection.ts';

type WorkloadStatus = WorkloadState['status'];

/**
 * The browsers that are there or coming or going; gone once terminated. The pool's counters are
 * counts of its lists.
 */
export const workloads: Projection<WorkloadState> = {
  name: 'workloads',
  version: 1,
  subjects: filters.fleet,
  readsView: false,
  key(event) {
    return isOf('workload', event) ? event.aggregate.id : null;
  },
  aggregateOf: (id) => ({ kind: 'workload', id }),
  evolve(view, event) {
    if (!isOf('workload', event)) return view;
    return event.state.status === 'terminated' ? null : event.state;
  },
  /** In the order of their last change: the longest idle stands at the low end. */
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
