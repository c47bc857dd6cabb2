import { fitting, readProcessLimits } from '#src/kernel/host/process-limits.ts';
import { createPlaces, thirdOf } from '#src/kernel/async/places.ts';
import { createFairSlots, type FairSlots } from '#src/kernel/async/fair-slots.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';

/**
 * What is transferred; each kind has places of its own. `command`: a body of WebDriver that is held
 * in memory.
 */
export type TransferKind = 'upload' | 'download' | 'extension' | 'command';

/** The transfers of this process that are under way: what they hold in memory has a bound. */
export type Transfers = {
  /**
   * A place for a transfer, as soon as there is one: an organization has a third of them at most,
   * and those that wait have turns. Disposing gives it back. A rejection: too many wait, or none
   * was free in time.
   */
  begin(kind: TransferKind, organizationId: string): Promise<Disposable | Rejection>;
};

export type TransferPlaces = Record<TransferKind, number>;

/** Of a client that reads slowly: four pieces of 256 KiB that were asked for ahead. */
const DOWNLOAD_BYTES = 1024 ** 2;
/** A body of 1 MiB, and what is made of it. */
const COMMAND_BYTES = 2 * 1024 ** 2;
const PLACES_MIN = 4;
const PLACES_MAX = 256;
/** Each has 20 MB here, 20 MB in the process that reads it, and the memory of a put. */
const EXTENSIONS = 4;
/** A transfer that waits has a connection, of whose body nothing is read. */
const WAIT_MS = 10_000;
const RETRY = { retryAfterSeconds: 5 };

/**
 * As many as a quarter of the memory holds of uploads, an eighth of downloads and an eighth of
 * commands.
 * @param putBytes what a put of the object store may have in memory
 */
export function placesFor(
  putBytes: number,
  memoryBytes = readProcessLimits().memoryBytes,
): TransferPlaces {
  return {
    upload: placesIn(memoryBytes / 4, putBytes),
    download: placesIn(memoryBytes / 8, DOWNLOAD_BYTES),
    extension: EXTENSIONS,
    command: placesIn(memoryBytes / 8, COMMAND_BYTES),
  };
}

function placesIn(memoryBytes: number, eachBytes: number): number {
  return fitting(memoryBytes, { eachBytes, least: PLACES_MIN, most: PLACES_MAX });
}

/** @param waitMs how long a transfer waits for a place */
export function createTransfers(places: TransferPlaces, waitMs = WAIT_MS): Transfers {
  const of = {
    upload: kind('upload'),
    download: kind('download'),
    extension: kind('extension'),
    command: kind('command'),
  };

  function kind(name: TransferKind) {
    const slots = places[name];
    const slotsPerOwner = thirdOf(slots);
    // As many may wait as may be under way.
    const bounds = { slots, slotsPerOwner, places: 2 * slots, placesPerOwner: 2 * slotsPerOwner };
    // Tells an owner that has all of its slots from one that others leave none.
    const owners = createPlaces({ max: Infinity, perOwner: slotsPerOwner });
    return { turns: createFairSlots(bounds), owners };
  }
  return {
    async begin(name, organizationId) {
      const { turns, owners } = of[name];
      const place = await slotWithin(turns, organizationId, waitMs);
      using taken = new DisposableStack();
      const own = owners.take(organizationId);
      if ('refused' in own) {
        if (place !== null) taken.use(place);
        return reject('TRANSFER_LIMIT_EXCEEDED', { limit: own.limit }, RETRY);
      }
      taken.use(own);
      if (place === null)
        return reject('UNAVAILABLE', { part: 'transfers' }, { ...RETRY, ...FULL });
      taken.use(place);
      return taken.move();
    },
  };
}

const FULL = { message: 'As many transfers are under way as may be; try again.' };

/** Null: there was none in time. */
async function slotWithin(turns: FairSlots, owner: string, ms: number): Promise<Disposable | null> {
  const late = new AbortController();
  const turn = turns.acquire(owner, late.signal);
  if (turn === null) return null;
  const timer = setTimeout(() => late.abort(), ms);
  const slot = await turn;
  clearTimeout(timer);
  if (!late.signal.aborted) return slot;
  slot[Symbol.dispose]();
  return null;
}
