import { describe } from 'vitest';
import { workQueueTimes } from '#test/support/messaging/work-queue-suite.ts';
import { realLogs } from '#test/support/stores/event-stores.ts';

describe.each(realLogs)('the leases of a work queue ($adapter)', (adapter) =>
  workQueueTimes(adapter),
);
