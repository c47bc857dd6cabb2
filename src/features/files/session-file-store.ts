import { filesMax, type FileOrigin, type FileRefusal } from '#events/session/files.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { FileCommand } from '#src/kernel/domain/session/commands.ts';
import {
  fileKey,
  filesAfter,
  type SessionFile,
  type SessionFiles,
} from '#src/kernel/domain/session/files.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { doubling, retry } from '#src/kernel/async/retry.ts';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import type { FileLimit } from '#src/kernel/messaging/session-files.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { BrowserFolders } from '#src/browsers/browsers.ts';
import type { Reporter } from '#src/commands/reporter.ts';

/** Limits in bytes: of one file, and of all files of a session together. */
export type FileLimits = { fileBytesMax: number; sessionBytesMax: number };

/** What the file stores of a server have in common. */
export type FileStoreDependencies = {
  folders: BrowserFolders;
  objects: Pick<ObjectStore, 'put' | 'get' | 'remove'>;
  limits: FileLimits;
  reporter: Pick<Reporter, 'session'>;
  /** Milliseconds since the epoch. */
  now: () => number;
  log: Pick<Logger, 'warn'>;
};

/** A file is more than a session may have; `max` in bytes, or files. */
export type Excess = { reason: FileLimit; max: number; of: 'bytes' | 'files' };

/** The session does not take the file, as when it has ended: nothing was recorded of it. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
}

/** What else is on its way to a session. */
export type Coming = { bytes: number; files: number };

const NOTHING: Coming = { bytes: 0, files: 0 };
const ACTOR = 'provisioner/files';
/** Refusals that are recorded of a session: a page may begin downloads without end. */
const REFUSALS_MAX = 100;
/** A copy of a file that takes longer is given up. */
const COPY_MS = 15 * 60_000;
/** Pause between attempts to read a session's files during an outage. */
const pauseMs = doubling(100, 2_000);

/** The files of one session on this server: what it has, and what it may still get. */
export class SessionFileStore {
  readonly identity: SessionIdentity;
  readonly workloadId: string;
  readonly folders: BrowserFolders;
  readonly objects: FileStoreDependencies['objects'];
  readonly #parts: FileStoreDependencies;
  readonly #ended = new AbortController();
  readonly #load: () => Promise<SessionFiles>;
  #files: SessionFiles = new Map();
  #loading: Promise<void> | null = null;
  #refusals = 0;
  #lastRefusal: Promise<unknown> = Promise.resolve();
  /** One at a time: names and limits are decided on what is there. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param load reads the files that its events tell of; until that is done it has none */
  constructor(
    parts: FileStoreDependencies,
    workloadId: string,
    identity: SessionIdentity,
    load: () => Promise<SessionFiles>,
  ) {
    this.#parts = parts;
    this.folders = parts.folders;
    this.objects = parts.objects;
    this.workloadId = workloadId;
    this.identity = identity;
    this.#load = load;
  }

  /**
   * Resolves once it knows its files. Waits while they cannot be read because of an outage.
   * @throws Error where that fails otherwise, or the session has ended; the next call tries again
   */
  known(): Promise<void> {
    this.#loading ??= this.#loadOnce().catch((error: unknown) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }
  async #loadOnce(): Promise<void> {
    const { signal } = this.#ended;
    signal.throwIfAborted();
    const isTransient = (error: unknown) => error instanceof Unavailable && !signal.aborted;
    this.#files = await retry({ pauseMs, isTransient, signal }, this.#load);
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  /** Does the work after all that was given before. @throws Error once the session has ended */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(async () => {
      await this.known();
      this.#ended.signal.throwIfAborted();
      return work();
    });
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** The bound of a copy: some time, or the end of the session. */
  bounded(): AbortSignal {
    return AbortSignal.any([this.#ended.signal, AbortSignal.timeout(COPY_MS)]);
  }

  /** The most bytes that a file may have, and what a longer one would exceed. */
  room(name: string | null, coming = NOTHING): { bytesMax: number; limit: FileLimit } {
    const { fileBytesMax, sessionBytesMax } = this.#parts.limits;
    const used = this.#files.values().reduce((sum, { bytes }) => sum + bytes, 0);
    const replaced = name === null ? 0 : (this.#files.get(name)?.bytes ?? 0);
    const left = sessionBytesMax - used - coming.bytes + replaced;
    const limit = left < fileBytesMax ? 'quota' : 'too_large';
    return { bytesMax: Math.max(0, Math.min(left, fileBytesMax)), limit };
  }

  /**
   * Why a file of so many bytes cannot be added; null: it can.
   * @param name null: one that is not there yet
   */
  excess(name: string | null, bytes: number, coming = NOTHING): Excess | null {
    const { fileBytesMax, sessionBytesMax } = this.#parts.limits;
    const isNew = name === null || !this.has(name);
    if (bytes > fileBytesMax) return { reason: 'too_large', max: fileBytesMax, of: 'bytes' };
    if (isNew && this.#files.size + coming.files >= filesMax)
      return { reason: 'quota', max: filesMax, of: 'files' };
    const isTooMuch = bytes > this.room(name, coming).bytesMax;
    return isTooMuch ? { reason: 'quota', max: sessionBytesMax, of: 'bytes' } : null;
  }

  /**
   * Records a file whose content is stored and in the folder.
   * @returns when it was recorded, ISO 8601
   * @throws NotTaken; another Error where it is not known whether it was recorded
   */
  async add(file: Omit<SessionFile, 'createdAt'> & { guid?: string }): Promise<string> {
    const replaced = this.#files.get(file.name);
    const at = await this.#record({ type: 'RecordFileAdded', ...file, now: this.#parts.now() });
    this.#files = filesAfter(this.#files, {
      type: 'session.file-added',
      data: { ...file, at },
    });
    if (replaced !== undefined) await this.forget(replaced.fileId);
    return at;
  }

  /** Removes a file. @returns false: there is none of the name */
  async remove(name: string): Promise<boolean> {
    const file = this.#files.get(name);
    if (file === undefined) return false;
    await this.folders.remove(this.workloadId, name, this.bounded());
    const at = await this.#record({ type: 'RecordFileRemoved', name, now: this.#parts.now() });
    this.#files = filesAfter(this.#files, { type: 'session.file-removed', data: { name, at } });
    await this.forget(file.fileId);
    return true;
  }

  /** Removes content from the store; what cannot be removed now is with the session's files. */
  async forget(fileId: string): Promise<void> {
    await this.objects
      .remove(fileKey(this.identity, fileId))
      .catch((error: unknown) =>
        this.#parts.log.warn({ err: error, fileId }, 'failed to remove a file from the store'),
      );
  }

  /** Records that a file is not among the session's; beyond the bound nothing is recorded. */
  refuse(
    name: string,
    origin: FileOrigin,
    reason: FileRefusal,
    more: { bytes?: number; guid?: string } = {},
  ): Promise<void> {
    this.#refusals += 1;
    if (this.#refusals > REFUSALS_MAX) return Promise.resolve();
    const refused = { type: 'RecordFileRefused', name, origin, reason, ...more } as const;
    const recorded = this.#record({ ...refused, now: this.#parts.now() }).then(
      () => undefined,
      (error: unknown) =>
        this.#parts.log.warn({ err: error, reason }, 'failed to record that a file was refused'),
    );
    this.#lastRefusal = Promise.allSettled([this.#lastRefusal, recorded]);
    return recorded;
  }

  /** Resolves when what has begun is done. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Resolves when the refusals are recorded, or could not be. */
  async recorded(): Promise<void> {
    await this.#lastRefusal;
  }

  /** Ends what has begun. */
  end(): void {
    this.#ended.abort(new Error('the session has ended'));
  }

  async #record(command: FileCommand): Promise<string> {
    const metadata = newMetadata(ACTOR);
    const recorded = await this.#parts.reporter.session(this.identity, command, metadata);
    if (isRejection(recorded)) throw new NotTaken(`${command.type}: ${recorded.code}`);
    return new Date(command.now).toISOString();
  }
}
