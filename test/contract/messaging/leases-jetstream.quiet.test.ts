import { describe } from 'vitest';
import { leasesTimes, realLeases } from '#test/support/messaging/leases-suite.ts';

describe.each(realLeases)('leases in time ($adapter)', (adapter) => leasesTimes(adapter));
