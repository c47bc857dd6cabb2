/**
 * Port: named files that are written once, whole, and read in parts. Adapters:
 * archive-files.folder.ts, archive-files.s3.ts, archive-files.memory.ts.
 */
export type ArchiveFiles = {
  /** The names of all files, sorted. */
  list(): Promise<string[]>;
  /** Bytes of a file. @throws FileMissing */
  size(name: string): Promise<number>;
  /**
   * The bytes of a range, or of the whole file. Fewer where the file ends earlier.
   * @throws FileMissing
   */
  read(name: string, range?: { offset: number; length: number }): Promise<Buffer>;
  /** The whole file in pieces. @throws FileMissing */
  stream(name: string): AsyncIterable<Buffer>;
  /**
   * Writes a file, and replaces one of that name. Atomic: a reader sees all of it or nothing, and
   * it is on disk when the promise resolves.
   */
  write(name: string, data: Buffer | AsyncIterable<Buffer>): Promise<void>;
  /** Writes a file that does not exist, atomically; false if it exists. */
  writeNew(name: string, data: Buffer): Promise<boolean>;
  /** Removes a file; it may be missing. */
  remove(name: string): Promise<void>;
};

/** A file of the archive does not exist. */
export class FileMissing extends Error {
  override readonly name = 'FileMissing';
  constructor(file: string, cause?: unknown) {
    super(`the file ${file} is missing`, { cause });
  }
}
