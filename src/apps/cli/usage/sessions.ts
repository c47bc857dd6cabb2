import type { KnownCommand } from '../command.ts';

/** Single sessions. */
export const sessionCommands: readonly KnownCommand[] = [
  {
    name: 'session history',
    summary: 'Show every event of a session with its actor, cause and changes',
    operands: ['SESSION-ID'],
    options: {},
    load: async () => (await import('../commands/session-history.ts')).showHistory,
  },
  {
    name: 'session at',
    summary: 'Show the state of a session at a past time or event',
    operands: ['SESSION-ID'],
    options: {
      time: {
        value: 'T',
        meaning: "RFC 3339 by the event store's clock; events of that millisecond are included",
      },
      seq: {
        value: 'SEQ',
        meaning: 'sequence of an event of any aggregate; that event is included',
      },
    },
    load: async () => (await import('../commands/session-at.ts')).showSessionAt,
  },
  {
    name: 'session export',
    summary:
      "Write a session's recorded life as stored: its events, its browsers' and its credits'",
    operands: ['SESSION-ID'],
    options: {
      out: { value: 'FILE', meaning: 'output file; an existing file is replaced; default: stdout' },
    },
    load: async () => (await import('../commands/life/export.ts')).exportSession,
  },
  {
    name: 'recording verify',
    summary: "Compare a session's recording with the event log; exit 1 if it differs",
    operands: ['SESSION-ID'],
    options: {},
    load: async () => (await import('../commands/recording/verify.ts')).verify,
  },
  {
    name: 'recording export',
    summary: "Write a session's recording as an RFB file (.fbs), or with ffmpeg as a video (.mp4)",
    operands: ['SESSION-ID'],
    options: {
      out: { value: 'FILE', meaning: 'output file, .fbs or .mp4; an existing file is replaced' },
      'with-idle': { meaning: 'a video: keep times without a change that are longer than 2 s' },
    },
    load: async () => (await import('../commands/recording/export.ts')).exportRecording,
  },
  {
    name: 'replay',
    summary: 'Fold recorded lives with this build; exit 1 if a state differs or is unreadable',
    operands: ['FILE'],
    repeatsLast: true,
    options: {},
    load: async () => (await import('../commands/life/replay.ts')).replay,
  },
  {
    name: 'why',
    summary: 'Explain in plain words why a session ended',
    operands: ['SESSION-ID'],
    options: {},
    load: async () => (await import('../commands/why.ts')).showWhy,
  },
];
