import { duration, mebibytes, type Values, variable } from './parse.ts';

export type RecordingsConfig = {
  /** Bytes of one session's recording; then it ends. */
  maxBytes: number;
  /** How long a recording is kept after its session's end. */
  retainMs: number;
};

export const recordingsVariables = {
  RECORDING_MAX_MB: variable(
    mebibytes(1, 1_000_000),
    '1024',
    'size at which the recording of a session ends',
  ),
  RECORDINGS_RETAIN: variable(
    duration(),
    '7d',
    'how long the recording of an ended session is kept',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readRecordings(values: Values<typeof recordingsVariables>): RecordingsConfig {
  return { maxBytes: values.RECORDING_MAX_MB, retainMs: values.RECORDINGS_RETAIN };
}
