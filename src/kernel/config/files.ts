import { BadConfig, bytes, duration, type Read } from './parse.ts';

/** Files of sessions. */
export type FilesConfig = {
  /** The largest file. */
  fileBytesMax: number;
  /** All files of a session together. */
  sessionBytesMax: number;
  /** How long files are kept after the end of their session. */
  retainMs: number;
};

export const filesVariables = {
  FILES_FILE_MAX: {
    fallback: '1GB',
    meaning: 'largest file that a session downloads or is given, as 200MB',
  },
  FILES_SESSION_MAX: {
    fallback: '4GB',
    meaning: 'the same for all files of a session',
  },
  FILES_RETAIN: {
    fallback: '24h',
    meaning: 'how long files and the last picture of an ended session are kept',
  },
} as const;
type Name = keyof typeof filesVariables;

/** @throws BadConfig naming the variable that is wrong */
export function readFiles(read: Read<Name>): FilesConfig {
  const fileBytesMax = bytes('FILES_FILE_MAX', read);
  const sessionBytesMax = bytes('FILES_SESSION_MAX', read);
  if (fileBytesMax > sessionBytesMax)
    throw new BadConfig(
      `FILES_FILE_MAX: ${read('FILES_FILE_MAX')} is more than FILES_SESSION_MAX, ` +
        read('FILES_SESSION_MAX'),
    );
  return { fileBytesMax, sessionBytesMax, retainMs: duration('FILES_RETAIN', read) };
}
