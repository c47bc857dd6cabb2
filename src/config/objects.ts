import { integer, type Read } from './parse.ts';

export type ObjectsConfig = {
  /** Greatest size of the stream OBJECTS. */
  maxBytes: number;
};

export const objectsVariables = {
  OBJECT_STORE_MAX_MB: {
    fallback: '8192',
    meaning: 'what files, profiles and recordings may take in NATS; less where NATS has no room',
  },
} as const;
type Name = keyof typeof objectsVariables;

const MIB = 1024 ** 2;

/** @throws BadConfig naming the variable that is wrong */
export function readObjects(read: Read<Name>): ObjectsConfig {
  return { maxBytes: integer('OBJECT_STORE_MAX_MB', read, 64, 100_000_000) * MIB };
}
