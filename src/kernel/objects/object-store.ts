import { Unavailable } from '#src/kernel/errors.ts';

/** What is stored under a key. */
export type StoredObject = {
  key: string;
  bytes: number;
  /** Of the bytes, in hexadecimal. */
  sha256: string;
  /** When the last put of it was done: milliseconds since 1970, by the clock of who stored it. */
  storedAt: number;
};

/** Inclusive, in bytes. */
export type ByteRange = { start: number; end: number };

export type ObjectOptions = { signal?: AbortSignal };

/** `freed` gets the bytes of each object that was replaced or removed. */
export type Freeing = { freed?: (bytes: number) => void };

/** `bytes`: its length, where that is known before its end. */
export type PutOptions = ObjectOptions & Freeing & { bytes?: number };

/** What a whole store holds, in bytes, with what puts under way have stored. */
export type StoreUse = { bytes: number; maxBytes: number };

/**
 * Port: objects of any size, each replaced as a whole. Keys are checked by object-key.ts. Adapters:
 * jetstream/jetstream-object-store.ts, s3/s3-object-store.ts, object-store.memory.ts.
 */
export type ObjectStore = {
  /** What a put may have in memory while its body is silent. */
  readonly putBytes: number;
  /**
   * Stores what the body yields, and replaces what was there only once all of it is stored: a
   * reader sees the old object or the new one.
   * @throws RangeError for a key that is none, or more than `OBJECT_BYTES_MAX`;
   * ObjectStoreUnavailable; ObjectStoreFull; what the body throws; the signal's reason. The object
   * is then what it was before.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<StoredObject>;
  /**
   * Null: no such object. The body is read as it is pulled, once. A range that ends behind the
   * object's end is cut there.
   * @throws RangeError for a key that is none, or a range that begins behind the object's end;
   * ObjectStoreUnavailable. The body throws ObjectChanged, or the signal's reason.
   */
  get(
    key: string,
    range?: ByteRange,
    options?: ObjectOptions,
  ): Promise<{ object: StoredObject; body: AsyncIterable<Uint8Array> } | null>;
  /** Null: no such object. @throws RangeError; ObjectStoreUnavailable */
  head(key: string): Promise<StoredObject | null>;
  /**
   * All objects whose keys begin with the prefix, which ends with `/`, in order of their keys.
   * @throws RangeError; ObjectStoreUnavailable
   */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes an object; it may be missing. @throws RangeError; ObjectStoreUnavailable */
  remove(key: string, options?: Freeing): Promise<void>;
  /**
   * Removes all objects whose keys begin with the prefix, which ends with `/`, and that were there
   * when it was called; returns how many.
   * @throws RangeError; ObjectStoreUnavailable
   */
  removeAll(prefix: string, options?: Freeing): Promise<number>;
  /**
   * Removes what puts have left behind that never ended, once they have ended for certain; returns
   * how many. What a put does that fails is removed by itself; this is for processes that were
   * killed, and for failures to remove.
   * @throws ObjectStoreUnavailable
   */
  removeLeftovers(): Promise<number>;
  /** Null: it has no size of its own. @throws ObjectStoreUnavailable */
  use(): Promise<StoreUse | null>;
} & AsyncDisposable;

/** The size of the largest object: what S3 copies in one request. */
export const OBJECT_BYTES_MAX = 5 * 1024 ** 3;

/** A put that takes longer than this fails. */
export const PUT_MS_MAX = 6 * 3_600_000;
/** The age of a put after which it has ended for certain, where nothing else tells. */
export const LEFTOVER_MS = 2 * PUT_MS_MAX;
/** A put that stores nothing for so long fails. */
export const PUT_SILENT_MS = 5 * 60_000;
/** A put that has stored nothing for so long has ended for certain: its lease is over. */
export const PUT_LEASE_MS = 2 * PUT_SILENT_MS;

/** The object store does not answer, or refuses this process. */
export class ObjectStoreUnavailable extends Unavailable {
  constructor(cause?: unknown) {
    super('object-store', cause);
  }
}

/** The object store has no room for more. Until something is removed, every put fails. */
export class ObjectStoreFull extends ObjectStoreUnavailable {
  constructor(cause?: unknown) {
    super(cause);
    this.message = 'the object store is full';
  }
}

/** The organization has as many bytes in the store as it may; others may store more. */
export class OrganizationStoreFull extends ObjectStoreFull {
  readonly maxBytes: number;
  constructor(maxBytes: number) {
    super();
    this.maxBytes = maxBytes;
    this.message = `the organization has stored as much as it may: ${maxBytes} bytes`;
  }
}

/** An object was replaced, removed or damaged while it was read: its last bytes are missing. */
export class ObjectChanged extends Error {
  override readonly name = 'ObjectChanged';
  constructor(key: string, cause?: unknown) {
    super(`the object ${key} changed while it was read`, { cause });
  }
}
