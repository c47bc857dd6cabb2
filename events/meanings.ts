/** The documentation of an event type: when it is recorded, and by which part of the service. */
export type Meaning = {
  /** One or two sentences. */
  when: string;
  /** As in the README's table. */
  by: string;
};

/** Every event type; a test compares it with the schemas and the README. */
export const meanings: Record<string, Meaning> = {
  'session.requested': {
    when:
      'A session was asked for and accepted: credential, limits, credits and duration are ' +
      'good. Its slot and its credits are reserved in the same step.',
    by: 'api (create)',
  },
  'session.queued': {
    when:
      'No server has taken the request in time (`QUEUE_AFTER`); it goes on waiting, until ' +
      '`QUEUE_TIMEOUT`.',
    by: 'timekeeper (no server took it in time)',
  },
  'session.assigned': {
    when:
      'A server has taken the request and launches a browser for it. Left out where a browser ' +
      'waits already.',
    by: 'provisioner (launches a browser for it)',
  },
  'session.requeued': {
    when: 'The server that had taken the request could not launch a browser; another may take it.',
    by: 'provisioner (could launch no browser for it)',
  },
  'session.activated': {
    when:
      'A browser that answers was given to the session: it can be driven and watched from now ' +
      'on, and is billed from `startedAt`.',
    by: 'provisioner (a browser answers)',
  },
  'session.extended': {
    when: 'The session may live longer; the credits for it are reserved in the same step.',
    by: 'api (extend)',
  },
  'session.expiry-warning': {
    when:
      'The session ends in 60 s unless it is extended. Once for each end; an end that was ' +
      'moved is warned of again.',
    by: 'timekeeper (60 s before the end)',
  },
  'session.accessed': {
    when:
      'Somebody asked how to connect, or connected. At most once a minute for a session; it ' +
      'moves the idle time-out.',
    by: 'api (access), gateway (connections)',
  },
  'session.stop-requested': {
    when:
      'The session is to end: somebody stopped it, its time is over, it was idle too long, or ' +
      'its user closed the browser. It is billed until `at`, however long the browser takes.',
    by: 'api (stop), timekeeper (expired, idle), provisioner (operator, browser closed)',
  },
  'session.stopped': {
    when:
      'The last event of a session that was stopped: nothing of its browser is left. What was ' +
      'reserved and not used is given back in the same step.',
    by: 'provisioner (it is gone), with the request where there was no browser left',
  },
  'session.failed': {
    when:
      'The last event of a session that ended by itself: no browser could be had, it crashed, ' +
      'or its server was lost. What was reserved and not used is given back in the same step.',
    by: 'provisioner, timekeeper (queue time-out, lost server)',
  },
  'ledger.credits-granted': {
    when: 'The organization was given credits.',
    by: 'command line, embedded start',
  },
  'ledger.slot-reserved': {
    when:
      'A session was accepted: it holds one of the organization’s slots, and the credits for ' +
      'its whole duration.',
    by: 'in one batch with `session.requested`',
  },
  'ledger.credits-reserved': {
    when: 'A session was extended: the credits for the extension are reserved.',
    by: 'in one batch with `session.extended`',
  },
  'ledger.slot-released': {
    when: 'A session has ended: its slot is free, what it used is spent, the rest is given back.',
    by: 'in one batch with `session.stopped` or `.failed`',
  },
  'organization.registered': {
    when: 'The organization exists from now on.',
    by: 'command line, embedded start',
  },
  'organization.tier-changed': {
    when: 'Other limits hold for the organization from now on.',
    by: 'command line',
  },
  'organization.key-issued': {
    when: 'An API key was issued. The event has its hash, never the key.',
    by: 'api (keys), command line, embedded start',
  },
  'organization.key-revoked': {
    when: 'An API key opens nothing any more; streams and connections that it opened end.',
    by: 'api (keys), command line, embedded start',
  },
  'server.joined': {
    when: 'A server runs and takes sessions: at each start of its provisioner.',
    by: 'provisioner (each start)',
  },
  'server.draining': {
    when: 'The server takes no new sessions; those that it runs end as they would.',
    by: 'command line; again with `joined` where its server starts anew',
  },
  'server.drained': {
    when: 'Nothing runs on a draining server any more: it can be switched off.',
    by: 'provisioner (nothing of a draining server is left)',
  },
  'server.undrained': {
    when: 'A draining server takes sessions again.',
    by: 'command line',
  },
  'server.pool-resized': {
    when:
      'Another number of browsers is to wait, or what limits them has changed; with all that ' +
      'it was decided on.',
    by: 'provisioner (each change of mind, with all it was decided on)',
  },
  'server.reconciled': {
    when:
      'What runs on the server was held against the log: what was put right, and what is left ' +
      'to be.',
    by: 'provisioner (held what runs against the log)',
  },
  'server.restarting': {
    when:
      'The server’s provisioner ends and leaves its browsers, with their sessions, to the next ' +
      'one; for a minute it is not taken for lost.',
    by: 'provisioner (ends, to be back)',
  },
  'server.left': {
    when: 'The server’s provisioner has ended in good order.',
    by: 'provisioner',
  },
  'server.lost': {
    when: 'The server has given no sign of life for too long; its sessions fail.',
    by: 'timekeeper (its lease is gone)',
  },
  'workload.provisioning': {
    when: 'A browser is to be launched.',
    by: 'provisioner (will launch one)',
  },
  'workload.launching': { when: 'Its programs are being started.', by: 'provisioner' },
  'workload.idle': {
    when: 'The browser answers and waits for a session.',
    by: 'provisioner (it answers)',
  },
  'workload.assigned': {
    when: 'The browser belongs to a session, and to no other ever.',
    by: 'provisioner (it serves a session)',
  },
  'workload.terminating': { when: 'The browser is being ended.', by: 'provisioner' },
  'workload.terminated': {
    when: 'Nothing of the browser is left.',
    by: 'provisioner, timekeeper (lost server)',
  },
};
