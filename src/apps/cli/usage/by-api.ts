import type { KnownCommand, Option } from '../command.ts';

const url: Option = {
  value: 'URL',
  meaning: "the API's address; default: API_URL, else the service on DATA_DIR",
};

/** Files of sessions, profiles and extensions, by the API with the key in BSS_API_KEY. */
export const apiCommands: readonly KnownCommand[] = [
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
  {
    name: 'profile list',
    summary: 'List the profiles of the organization whose key is in BSS_API_KEY, by the API',
    options: { url },
    load: async () => (await import('../commands/profiles.ts')).listProfiles,
  },
  {
    name: 'profile show',
    summary: 'Show the versions of a profile, with the origins and cookies of each by name',
    operands: ['PROFILE-ID'],
    options: { url },
    load: async () => (await import('../commands/profiles.ts')).showProfile,
  },
  {
    name: 'profile create',
    summary: 'Create an empty profile; sessions are created with its id',
    operands: ['NAME'],
    options: { url },
    load: async () => (await import('../commands/profiles.ts')).createProfile,
  },
  {
    name: 'profile save',
    summary: "Save an active session's profile now, as a new version; the session goes on",
    operands: ['SESSION-ID'],
    options: { url },
    load: async () => (await import('../commands/profiles.ts')).saveProfile,
  },
  {
    name: 'profile remove',
    summary: 'Remove a profile with all its versions, unless an open session saves it',
    operands: ['PROFILE-ID'],
    options: { url },
    load: async () => (await import('../commands/profiles.ts')).removeProfile,
  },
  {
    name: 'extension list',
    summary: 'List the extensions of the organization whose key is in BSS_API_KEY, by the API',
    options: { url },
    load: async () => (await import('../commands/extensions.ts')).listExtensions,
  },
  {
    name: 'extension upload',
    summary: 'Upload an extension, a zip or a CRX; sessions are created with its id',
    operands: ['FILE'],
    options: { url },
    load: async () => (await import('../commands/extensions.ts')).uploadExtension,
  },
  {
    name: 'extension remove',
    summary: 'Remove an extension; sessions that have it go on',
    operands: ['EXTENSION-ID'],
    options: { url },
    load: async () => (await import('../commands/extensions.ts')).removeExtension,
  },
];
