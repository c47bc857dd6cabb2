import type { KnownCommand, Option } from '../command.ts';

const url: Option = {
  value: 'URL',
  meaning: "the API's address; default: API_URL, else the service on DATA_DIR",
};

/** The files of single sessions. They use the API, with the key in BSS_API_KEY. */
export const fileCommands: readonly KnownCommand[] = [
  {
    name: 'files list',
    summary: 'List the files of a session, by the API with the key in BSS_API_KEY',
    operands: ['SESSION-ID'],
    options: { url },
    load: async () => (await import('../commands/files.ts')).listFiles,
  },
  {
    name: 'files get',
    summary: 'Write a file of a session to a file of this machine, or to stdout',
    operands: ['SESSION-ID', 'NAME'],
    options: {
      out: { value: 'FILE', meaning: 'output file; an existing file is replaced; default: stdout' },
      url,
    },
    load: async () => (await import('../commands/files.ts')).getFile,
  },
  {
    name: 'files put',
    summary: 'Put a file of this machine into the folder of an active session',
    operands: ['SESSION-ID', 'FILE'],
    options: {
      name: { value: 'NAME', meaning: 'its name in the session; default: that of the file' },
      url,
    },
    load: async () => (await import('../commands/files.ts')).putFile,
  },
  {
    name: 'files remove',
    summary: 'Remove a file from the folder of an active session',
    operands: ['SESSION-ID', 'NAME'],
    options: { url },
    load: async () => (await import('../commands/files.ts')).removeFile,
  },
];
