import { duration, integer, type Read } from './parse.ts';

export type RecordingsConfig = {
  /** Bytes of one session's recording; then it ends. */
  maxBytes: number;
  /** How long a recording is kept after its session's end. */
  retainMs: number;
};

export const recordingsVariables = {
  RECORDING_MAX_MB: {
    fallback: '1024',
    meaning: 'size at which the recording of a session ends',
  },
  RECORDINGS_RETAIN: {
    fallback: '7d',
    meaning: 'how long the recording of an ended session is kept',
  },
} as const;
type Name = keyof typeof recordingsVariables;

const MIB = 1024 ** 2;

/** @throws BadConfig naming the variable that is wrong */
export function readRecordings(read: Read<Name>): RecordingsConfig {
  return {
    maxBytes: integer('RECORDING_MAX_MB', read, 1, 1_000_000) * MIB,
    retainMs: duration('RECORDINGS_RETAIN', read),
  };
}
