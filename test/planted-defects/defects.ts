/** A defect that is planted into a copy of the source, to see that the tests find it. */
export type Defect = {
  /** The part of the service that gets it. */
  part: string;
  name: string;
  /** The source file, and the text there that is replaced. It is in the file once. */
  file: string;
  from: string;
  to: string;
  /** The test files that find it, without what says their tier: see `test-files.ts`. */
  tests: readonly string[];
};

/** One for each part; those of the simulation are in `test/simulation/bugs.ts`. */
export const defects: readonly Defect[] = [
  {
    part: 'command handler',
    name: 'a report is dropped where a lagging replica makes it look superfluous',
    file: 'src/commands/handle-command.ts',
    from: 'if (isFirst && !decisions.some(isWriting)) return againAtOnce;',
    to: '',
    tests: ['test/unit/commands/handle-command'],
  },
  {
    part: 'ledger',
    name: 'an organization gets one session more than its limit',
    file: 'src/kernel/domain/organization/ledger.ts',
    from: 'if (ledger.slotsInUse >= concurrentSessions)',
    to: 'if (ledger.slotsInUse > concurrentSessions)',
    tests: ['test/unit/domain/organization/ledger'],
  },
  {
    part: 'append',
    name: 'of a batch only the first aggregate is checked for changes',
    file: 'src/kernel/event-store/jetstream/append.ts',
    from: '    if (expected !== null) {',
    to: '    if (expected !== null && index === 0) {',
    tests: ['test/contract/event-store/event-store'],
  },
  {
    part: 'projection',
    name: 'of several events of a view in one batch only the first is folded',
    file: 'projections/runner/fold.ts',
    from: 'if (key !== null) folded.set(',
    to: 'if (key !== null && !folded.has(key)) folded.set(',
    tests: ['test/unit/projections/run-projection'],
  },
  {
    part: 'checkpoint',
    name: 'a batch that was written before moves the checkpoint back',
    file: 'projections/store/redis/scripts.ts',
    from: 'elseif stored < after or stored >= upTo then',
    to: 'elseif stored < after then',
    tests: ['test/contract/projections/views'],
  },
  {
    part: 'queue',
    name: 'a new work queue leaves out the items that were there before it',
    file: 'src/kernel/messaging/jetstream/jetstream-work-queue.ts',
    from: "deliver_policy: 'all'",
    to: "deliver_policy: 'new'",
    tests: ['test/contract/messaging/work-queue'],
  },
  {
    part: 'lease',
    name: 'a lease is given to a second holder',
    file: 'src/kernel/messaging/jetstream/jetstream-leases.ts',
    from: "const isHeld = !isFree && entry.string() !== '' && entry.string() !== holder;",
    to: 'const isHeld = false;',
    tests: ['test/contract/messaging/leases'],
  },
  {
    part: 'timer',
    name: 'a timer that fired too early is not set again',
    file: 'src/roles/timekeeper/timer-command.ts',
    from: 'return at === null ? null : Math.max(at, Math.max(now, firedAt ?? now) + AGAIN_MIN_MS);',
    to: 'return at === null || at > now ? null : Math.max(now, firedAt ?? now) + AGAIN_MIN_MS;',
    tests: ['test/unit/timekeeper/timer-command'],
  },
  {
    part: 'reconcile',
    name: 'a browser that the pool is in charge of is ended as a stray',
    file: 'src/roles/provisioner/reconcile/plan.ts',
    from: '    .filter(({ workloadId }) => !inCharge.has(workloadId))\n',
    to: '',
    tests: ['test/unit/provisioner/plan'],
  },
  {
    part: 'CDP relay',
    name: 'automation goes on while a person holds the session',
    file: 'src/roles/gateway/cdp/cdp.ts',
    from: 'if (isRead && !browser.writableNeedDrain) client.resume();',
    to: 'if (!browser.writableNeedDrain) client.resume();',
    tests: ['test/integration/gateway/steering'],
  },
  {
    part: 'VNC view-only',
    name: 'the keys of a viewer that may only watch reach the browser',
    file: 'src/roles/gateway/vnc/rfb-filter.ts',
    from: 'const passes = !shape.steers || maySteer();',
    to: 'const passes = true;',
    tests: ['test/unit/gateway/rfb-filter'],
  },
  {
    part: 'tickets',
    name: 'a forged ticket opens a session',
    file: 'src/roles/gateway/access/ticket.ts',
    from: 'if (!timingSafeEqual(tagOf(plain), tag)) return null;',
    to: '',
    tests: ['test/unit/gateway/ticket'],
  },
  {
    part: 'rate limit',
    name: 'a request takes more units than are left',
    file: 'src/roles/api/auth/rate-limit.redis.ts',
    from: 'local isAllowed = sum + units <= limit',
    to: 'local isAllowed = sum < limit',
    tests: ['test/contract/rate-limit'],
  },
  {
    part: 'files’ quota',
    name: 'a session keeps more bytes of files than it may',
    file: 'src/features/files/session-file-store.ts',
    from: 'const left = sessionBytesMax - used - coming.bytes + replaced;',
    to: 'const left = sessionBytesMax - coming.bytes + replaced;',
    tests: ['test/unit/provisioner/files/downloads'],
  },
  {
    part: 'profile’s writer',
    name: 'two sessions at once may save one profile',
    file: 'src/kernel/domain/profile/profile.ts',
    from: 'if (isWriterOpen && profile.writer !== sessionId) return inUse(profile);',
    to: '',
    tests: ['test/unit/domain/profile/profile'],
  },
  {
    part: 'webhook’s order',
    name: 'a session’s newer event is sent before an older one',
    file: 'src/features/webhooks/progress.ts',
    from: 'open: [...lane.open, event]',
    to: 'open: [event, ...lane.open]',
    tests: ['test/unit/webhooks/webhooks'],
  },
  {
    part: 'archive’s border',
    name: 'a read lacks the events that are purged while it goes on',
    file: 'src/features/archive/archived-event-store.ts',
    from: '      if (!isWhole) break;\n',
    to: '',
    tests: ['test/contract/archive/archived-event-store'],
  },
  {
    part: 'fair queue',
    name: 'an organization loses its turn where another is served out of turn',
    file: 'src/kernel/domain/fleet/fair-queue.ts',
    from: '    time = Math.min(time, startOf(id));\n',
    to: '',
    tests: ['test/unit/domain/fleet/fair-queue'],
  },
];
