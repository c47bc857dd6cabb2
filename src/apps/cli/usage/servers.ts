import type { KnownCommand } from '../command.ts';
import { POOL_DAYS_MAX } from '../limits.ts';

/** Servers, their pools and images. */
export const serverCommands: readonly KnownCommand[] = [
  {
    name: 'servers list',
    summary: 'List the servers that run browsers',
    options: { all: { meaning: 'include servers that left or were lost' } },
    load: async () => (await import('../commands/servers.ts')).listServers,
  },
  {
    name: 'servers drain',
    summary: 'Stop a server from taking new sessions; running sessions go on',
    operands: ['SERVER-ID'],
    options: { wait: { meaning: 'end once it has no session and no browser any more' } },
    load: async () => (await import('../commands/servers.ts')).drainServer,
  },
  {
    name: 'servers undrain',
    summary: 'Let a draining server take new sessions again',
    operands: ['SERVER-ID'],
    options: {},
    load: async () => (await import('../commands/servers.ts')).undrainServer,
  },
  {
    name: 'servers history',
    summary: 'Show every event of a server; each pool decision is replayed',
    operands: ['SERVER-ID'],
    options: {},
    load: async () => (await import('../commands/servers.ts')).showServerHistory,
  },
  {
    name: 'pool simulate',
    summary: "Run a server's recorded requests through the pool policy, beside what was",
    options: {
      from: { value: 'TIME', meaning: 'begin, RFC 3339 or a date in UTC' },
      to: { value: 'TIME', meaning: `end, at most ${POOL_DAYS_MAX} days later; default: now` },
      server: { value: 'ID', meaning: 'the server; needed if several served requests' },
      policy: { value: 'N', meaning: 'only this version, of 2, 3; default: each' },
      min: { value: 'N', meaning: 'POOL_MIN_IDLE; default: as in the last recorded decision' },
      max: { value: 'N', meaning: 'POOL_MAX; default: as in the last recorded decision' },
    },
    load: async () => (await import('../commands/pool/simulate.ts')).simulatePoolCommand,
  },
  {
    name: 'image status',
    summary: 'List the images of Docker browsers: Chromium’s version, age, containers',
    options: {},
    load: async () => (await import('../commands/image.ts')).showImages,
  },
  {
    name: 'image build',
    summary: 'Build the image of Docker browsers anew; idle browsers are replaced, sessions go on',
    options: {},
    load: async () => (await import('../commands/image.ts')).buildImageCommand,
  },
];
