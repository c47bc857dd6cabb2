/** The documentation of an event type: when it is recorded, and by which part of the service. */
export type Meaning = {
  /** One or two sentences. */
  when: string;
  /** As in the README's table. */
  by: string;
};

const carriedForward: Meaning = {
  when: 'The state again: events up to `archivedUpTo` may be purged. Not for organizations.',
  by: 'archivist',
};

/** Every event type; a test compares it with the schemas and the README. */
export const meanings: Record<string, Meaning> = {
  'session.requested': {
    when:
      'A request for a session was accepted: credential, limits, credits and duration are ' +
      'valid. The session’s slot and credits are reserved in the same batch.',
    by: 'api (create)',
  },
  'session.queued': {
    when:
      'No server has accepted the request within `QUEUE_AFTER`; it waits until ' +
      '`QUEUE_TIMEOUT`.',
    by: 'timekeeper (no server accepted it in time)',
  },
  'session.assigned': {
    when:
      'A server has accepted the request and launches a browser for it. Not recorded if a ' +
      'browser is idle.',
    by: 'provisioner (launches a browser)',
  },
  'session.requeued': {
    when:
      'The server that had accepted the request could not launch a browser; another server ' +
      'may accept it.',
    by: 'provisioner (launch failed)',
  },
  'session.activated': {
    when:
      'A ready browser was assigned to the session: clients can connect from now on, and the ' +
      'session is billed from `startedAt`.',
    by: 'provisioner (browser ready)',
  },
  'session.extended': {
    when: 'The session’s expiry was moved; the credits for it are reserved in the same batch.',
    by: 'api (extend)',
  },
  'session.expiry-warning': {
    when:
      'The session expires in 60 s unless it is extended. Recorded once for each expiry; an ' +
      'extension leads to another warning.',
    by: 'timekeeper (60 s before the end)',
  },
  'session.accessed': {
    when:
      'A client read the session’s addresses or connected. Recorded at most once a minute for ' +
      'a session; it moves the idle timeout.',
    by: 'api (access), gateway (connections)',
  },
  'session.access-rotated': {
    when:
      'A client replaced the session’s addresses. Those issued before are refused, and ' +
      'connections opened with them are closed; the browser goes on.',
    by: 'api (rotate-access)',
  },
  'session.updated': {
    when: 'A client changed the session’s name, description or labels.',
    by: 'api (update)',
  },
  'session.handoff-requested': {
    when: 'The session’s automation asks a person for help, until `expiresAt`.',
    by: 'api (hand-offs)',
  },
  'session.handoff-taken': {
    when:
      'A person has taken the hand-off and alone steers the browser: commands of the automation ' +
      'wait, and other viewers only watch.',
    by: 'api (hand-offs)',
  },
  'session.handoff-completed': {
    when: 'The person has given the browser back: the automation goes on.',
    by: 'api (hand-offs)',
  },
  'session.handoff-expired': {
    when: 'The hand-off was not completed by its `expiresAt`: the automation goes on.',
    by: 'timekeeper (hand-off expired), api (with the next hand-off)',
  },
  'session.share-created': {
    when: 'A client made an address of the session’s screen for others.',
    by: 'api (shares)',
  },
  'session.share-used': {
    when: 'Somebody connected to the screen by the address of a share.',
    by: 'gateway (connections)',
  },
  'session.share-revoked': {
    when: 'The address of a share is worthless; connections opened with it are closed.',
    by: 'api (shares)',
  },
  'session.egress-recorded': {
    when:
      'What the browser of a session with egress rules sent, received and was refused since the ' +
      'last record, by host: after 10 s, then at growing intervals up to 10 minutes, and at the ' +
      'end.',
    by: 'provisioner (egress)',
  },
  'session.recording-stored': {
    when:
      'Segments of the session’s recording were stored, with the hash of each, or a gap in it is ' +
      'known. At most once a minute while the screen changes, and before the session’s end.',
    by: 'provisioner (recordings)',
  },
  'session.file-added': {
    when:
      'A file is in the session’s folder and in the object store: the browser downloaded it, or ' +
      'a client uploaded it. It replaces one of the same name.',
    by: 'provisioner (downloads, uploads)',
  },
  'session.file-removed': {
    when: 'A client removed a file from the session’s folder.',
    by: 'provisioner (files)',
  },
  'session.file-refused': {
    when:
      'A download or an upload is not among the session’s files: it was too large, was ' +
      'cancelled or failed. At most 100 are recorded for a session by one provisioner.',
    by: 'provisioner (downloads, uploads)',
  },
  'session.profile-save-requested': {
    when: 'A client asked for the profile to be saved while the session goes on.',
    by: 'api (save profile)',
  },
  'session.profile-saved': {
    when:
      'The session has saved its profile as a new version: at its end (`atEnd`), or because a ' +
      'client asked for it.',
    by: 'provisioner (browser closed, asked by the api)',
  },
  'session.profile-not-saved': {
    when:
      'The session was to save its profile and could not; the last version is unchanged. With ' +
      '`atEnd` nothing of the session is saved any more.',
    by: 'provisioner, timekeeper (with the session’s end if the browser ended otherwise)',
  },
  'session.stop-requested': {
    when:
      'The session ends: a client stopped it, it has expired, it was idle too long, or its user ' +
      'closed the browser. It is billed until `at`, however long the browser takes to stop.',
    by: 'api (stop), timekeeper (expired, idle, client lost), provisioner (operator, closed)',
  },
  'session.stopped': {
    when:
      'The last event of a session that was stopped: its browser is removed. Unused credits ' +
      'are given back in the same batch. `blackBox` is what the browser told before.',
    by: 'provisioner (browser removed), api, timekeeper (if there is no browser)',
  },
  'session.failed': {
    when:
      'The last event of a session that failed: no browser was available, the browser crashed, ' +
      'or its server was lost. Unused credits are given back in the same batch. `blackBox` is ' +
      'what the browser told before.',
    by: 'provisioner, timekeeper (queue time-out, lost server)',
  },
  'session.carried-forward': carriedForward,
  'ledger.credits-granted': {
    when: 'The organization was given credits.',
    by: 'command line, api (a start with `DEV_API_KEY`)',
  },
  'ledger.slot-reserved': {
    when:
      'A session was accepted: it holds one of the organization’s slots, and the credits for ' +
      'its whole duration.',
    by: 'api (in one batch with `session.requested`)',
  },
  'ledger.credits-reserved': {
    when: 'A session was extended: the credits for the extension are reserved.',
    by: 'api (in one batch with `session.extended`)',
  },
  'ledger.slot-released': {
    when:
      'A session has ended: its slot is free, and its unused credits are given back. The ledger ' +
      'adds up its traffic, if it had egress rules.',
    by: 'api, provisioner, timekeeper (each in one batch with `session.stopped` or `.failed`)',
  },
  'ledger.carried-forward': carriedForward,
  'organization.registered': {
    when: 'The organization exists from now on.',
    by: 'command line, api (a start with `DEV_API_KEY`)',
  },
  'organization.tier-changed': {
    when: 'The organization has another tier, and with it other limits.',
    by: 'command line',
  },
  'organization.key-issued': {
    when: 'An API key was issued. The event has its hash, never the key.',
    by: 'api (keys, a start with `DEV_API_KEY`), command line',
  },
  'organization.key-revoked': {
    when: 'An API key was revoked; streams and connections that it opened are closed.',
    by: 'api (keys, a start with `DEV_API_KEY`), command line',
  },
  'organization.origins-allowed': {
    when: 'The origins of pages that may embed the screens of shares were replaced.',
    by: 'api (origins)',
  },
  'organization.sessions-stop-requested': {
    when:
      'One request stopped several sessions. The `session.stop-requested` of each names this ' +
      'event as its cause.',
    by: 'api (stop sessions)',
  },
  'organization.profile-added': {
    when: 'The organization has another profile; in one batch with `profile.created`.',
    by: 'api (profiles)',
  },
  'organization.profile-removed': {
    when: 'The organization has one profile less; in one batch with `profile.removed`.',
    by: 'api (profiles)',
  },
  'organization.extension-uploaded': {
    when: 'The organization has another browser extension, which its sessions may name.',
    by: 'api (extensions)',
  },
  'organization.webhook-added': {
    when: 'The organization has another webhook: its events are sent to a URL from now on.',
    by: 'api (webhooks)',
  },
  'organization.webhook-changed': {
    when: 'A webhook has another URL, or gets other events.',
    by: 'api (webhooks)',
  },
  'organization.webhook-removed': {
    when: 'The organization has no longer one of its webhooks.',
    by: 'api (webhooks)',
  },
  'organization.webhook-disabled': {
    when:
      'Nothing is sent to a webhook until it is enabled: a caller asked for it, one event failed ' +
      'for three days, or the URL answered 410.',
    by: 'api (webhooks), webhooks (gives up)',
  },
  'organization.webhook-enabled': {
    when: 'A webhook goes on where it stopped.',
    by: 'api (webhooks)',
  },
  'organization.webhook-secret-rotated': {
    when:
      'A webhook has a new secret, which is derived and not in the event. The old one is valid ' +
      'for another day.',
    by: 'api (webhooks)',
  },
  'organization.webhook-replay-requested': {
    when: 'A webhook begins again at an earlier event.',
    by: 'api (webhooks)',
  },
  'organization.extension-removed': {
    when: 'The organization has no longer one of its browser extensions.',
    by: 'api (extensions)',
  },
  'organization.carried-forward': carriedForward,
  'profile.created': {
    when: 'A profile exists from now on, without a version.',
    by: 'api (profiles)',
  },
  'profile.writer-admitted': {
    when:
      'A session was created that saves the profile. No other one is admitted before it has ' +
      'ended.',
    by: 'api (in one batch with `session.requested`)',
  },
  'profile.version-saved': {
    when: 'A version was stored; of the older ones the newest `kept` are kept, this one included.',
    by: 'provisioner (in one batch with `session.profile-saved`)',
  },
  'profile.removed': {
    when: 'The profile was removed with all its versions.',
    by: 'api (profiles)',
  },
  'profile.carried-forward': carriedForward,
  'server.joined': {
    when: 'A server has started and accepts sessions; recorded at each start of its provisioner.',
    by: 'provisioner (each start)',
  },
  'server.browser-updated': {
    when:
      'A newer browser image is there: new browsers of the server run from it; idle ones of the ' +
      'older image are replaced, running sessions keep theirs. `egress` is there if it changes ' +
      'with the image.',
    by: 'provisioner (its image was rebuilt or replaced)',
  },
  'server.draining': {
    when: 'The server accepts no new sessions; its running sessions continue.',
    by: 'command line, api (operators), provisioner (with `joined` if a draining server restarts)',
  },
  'server.drained': {
    when: 'A draining server has no browsers left: it can be shut down.',
    by: 'provisioner (a draining server has no browsers left)',
  },
  'server.undrained': {
    when: 'A draining server accepts sessions again.',
    by: 'command line, api (operators)',
  },
  'server.pool-resized': {
    when:
      'The target number of idle browsers, or what limits it, has changed; with all inputs of ' +
      'the decision.',
    by: 'provisioner (each change of the target)',
  },
  'server.reconciled': {
    when:
      'The server’s browsers were reconciled with the event store: the differences that were ' +
      'corrected, and those that are left.',
    by: 'provisioner (each reconciliation that finds a change)',
  },
  'server.restarting': {
    when:
      'The server’s provisioner shuts down and leaves its browsers, with their sessions, to the ' +
      'next one; for a minute the server is not declared lost.',
    by: 'provisioner (shuts down for a restart)',
  },
  'server.left': {
    when: 'The server’s provisioner has shut down in order.',
    by: 'provisioner',
  },
  'server.lost': {
    when: 'The server’s lease has expired; its sessions fail.',
    by: 'timekeeper (its lease has expired)',
  },
  'server.carried-forward': carriedForward,
  'workload.provisioning': {
    when: 'The pool decided to launch a browser.',
    by: 'provisioner (decides to launch)',
  },
  'workload.launching': { when: 'The browser’s programs are being started.', by: 'provisioner' },
  'workload.idle': {
    when: 'The browser is ready and waits for a session.',
    by: 'provisioner (browser ready)',
  },
  'workload.assigned': {
    when: 'The browser was assigned to a session; it never serves another.',
    by: 'provisioner (serves a session)',
  },
  'workload.terminating': { when: 'The browser is being terminated.', by: 'provisioner' },
  'workload.terminated': {
    when: 'The browser and all its resources are removed.',
    by: 'provisioner, timekeeper (lost server)',
  },
  'workload.carried-forward': carriedForward,
  'archive.sealed': {
    when: 'The archive ends with another segment; its readers take nothing else for its end.',
    by: 'archivist (before it purges)',
  },
  'archive.carried-forward': carriedForward,
};
