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
    meaning: 'greatest size of the recording of one session; then it ends',
  },
  RECORDINGS_RETAIN: {
    fallback: '7d',
    meaning: 'how long a recording is kept after the end of its session',
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
