import type { KnownCommand } from '../command.ts';

/** What keeps and checks the events and read models. */
export const installationCommands: readonly KnownCommand[] = [
  {
    name: 'projections list',
    summary: 'List the read models with their checkpoints, and leftovers of rebuilds',
    options: {},
    load: async () => (await import('../commands/projections.ts')).listProjections,
  },
  {
    name: 'projections rebuild',
    summary: 'Build read models anew beside those in use, then replace those',
    optionalOperand: 'NAME',
    options: {
      all: { meaning: 'all projections; the default' },
    },
    load: async () => (await import('../commands/projections.ts')).rebuildProjections,
  },
  {
    name: 'projections verify',
    summary: 'Fold all events anew and compare with the read models field by field',
    optionalOperand: 'NAME',
    options: {
      all: { meaning: 'all projections; the default' },
      sample: { value: 'N', meaning: 'compare only N views of each, picked at random' },
    },
    load: async () => (await import('../commands/projections.ts')).verifyProjections,
  },
  {
    name: 'dead-letters list',
    summary: 'List the dead letters: events that a projection or a work queue could not handle',
    options: {},
    load: async () => (await import('../commands/dead-letters.ts')).listDeadLetters,
  },
  {
    name: 'dead-letters show',
    summary: 'Show the event of a dead letter in full, and why it could not be handled',
    operands: ['SEQ'],
    options: {},
    load: async () => (await import('../commands/dead-letters.ts')).showDeadLetter,
  },
  {
    name: 'dead-letters retry',
    summary: 'Fold the view of an event again, or redeliver it to its work queue',
    optionalOperand: 'SEQ',
    options: { all: { meaning: 'all dead letters' } },
    load: async () => (await import('../commands/dead-letters.ts')).retryDeadLetters,
  },
  {
    name: 'dead-letters skip',
    summary: 'Skip a dead letter for good; its event stays in the event store',
    optionalOperand: 'SEQ',
    options: { all: { meaning: 'all dead letters' } },
    load: async () => (await import('../commands/dead-letters.ts')).skipDeadLetters,
  },
  {
    name: 'archive status',
    summary: 'Show what the archive holds, and where the event store begins',
    options: {},
    load: async () => (await import('../commands/archive/status.ts')).showArchive,
  },
  {
    name: 'archive verify',
    summary:
      'Check every byte of the archive by its hashes and signatures; exit 1 for a difference',
    options: {
      from: { value: 'N', meaning: 'first segment; default: 1' },
      to: { value: 'N', meaning: 'last segment; default: the last' },
      key: {
        value: 'FINGERPRINT',
        meaning: "key that signed it; default: this data folder's (bss audit key)",
      },
      alone: { meaning: 'without a service: a missing end of the archive is not found' },
    },
    load: async () => (await import('../commands/archive/verify.ts')).verifyArchiveCommand,
  },
  {
    name: 'archive run',
    summary: 'Archive now what RETAIN_ENDED and RETAIN_EVENTS_MAX do not keep',
    options: {
      before: { value: 'TIME', meaning: 'archive what is older than this, and nothing else' },
    },
    load: async () => (await import('../commands/archive/run.ts')).runArchiveCommand,
  },
  {
    name: 'objects keys',
    summary: 'Count the archives of profiles by the master key that seals them',
    options: {},
    load: async () => (await import('../commands/objects/keys.ts')).showKeysOfObjects,
  },
  {
    name: 'objects sweep',
    summary: 'Count the files, profiles and recordings whose time is over, or remove them now',
    options: {
      remove: { meaning: 'remove them; without it nothing is removed' },
      unknown: {
        meaning: 'remove those that the event store does not know, too; take a backup first',
      },
      'beyond-limit': { meaning: 'also if more are over at once than a sweep removes by itself' },
      adopt: { meaning: 'first make this event store the owner of the bucket' },
    },
    load: async () => (await import('../commands/objects/sweep.ts')).sweepObjectsCommand,
  },
  {
    name: 'backup',
    summary: 'Write all streams to a folder while the service runs',
    options: { to: { value: 'DIR', meaning: 'an empty folder; created if it is missing' } },
    load: async () => (await import('../commands/backup.ts')).backupCommand,
  },
  {
    name: 'restore',
    summary: 'Create the streams from a backup, where none exist and no service runs',
    options: { from: { value: 'DIR', meaning: 'a folder that bss backup has written' } },
    load: async () => (await import('../commands/backup.ts')).restoreCommand,
  },
  {
    name: 'doctor',
    summary: 'Check this installation and advise on each finding; exit 1 if one is bad',
    options: {
      fix: { meaning: 'first correct the settings and replicas of the streams' },
    },
    load: async () => (await import('../commands/doctor.ts')).runDoctor,
  },
];
