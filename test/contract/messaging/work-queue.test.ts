import { describe } from 'vitest';
import { workQueueRules, workQueueTimes } from '#test/support/messaging/work-queue-suite.ts';
import { memoryLogs, realLogs } from '#test/support/stores/event-stores.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

describe.each(realLogs)('a work queue of the event store ($adapter)', (adapter) =>
  workQueueRules(adapter),
);
describe.each(memoryLogs)('a work queue of the event store ($adapter)', (memory) => {
  const time = useVirtualTime();
  workQueueRules(memory, time);
  workQueueTimes(memory, time);
});
