import { describe } from 'vitest';
import { workQueueRules, workQueueTimes } from '#test/support/messaging/work-queue-suite.ts';
import { memoryLogs, realLogs } from '#test/support/stores/event-stores.ts';

describe.each([...memoryLogs, ...realLogs])(
  'a work queue of the event store ($adapter)',
  workQueueRules,
);
describe.each(memoryLogs)('the leases of a work queue ($adapter)', workQueueTimes);
