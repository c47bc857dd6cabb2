import { BadConfig, bytes, duration, type Values, variable } from './parse.ts';

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
  FILES_FILE_MAX: variable(
    bytes,
    '1GB',
    'largest file that a session downloads or is given, as 200MB',
  ),
  FILES_SESSION_MAX: variable(bytes, '4GB', 'the same for all files of a session'),
  FILES_RETAIN: variable(
    duration(),
    '24h',
    'how long files and the last picture of an ended session are kept',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readFiles(values: Values<typeof filesVariables>): FilesConfig {
  const { FILES_FILE_MAX: fileBytesMax, FILES_SESSION_MAX: sessionBytesMax } = values;
  if (fileBytesMax > sessionBytesMax)
    throw new BadConfig('FILES_FILE_MAX: is more than FILES_SESSION_MAX');
  return { fileBytesMax, sessionBytesMax, retainMs: values.FILES_RETAIN };
}
