import {
  blackBoxEntriesMax,
  type BlackBox,
  type BlackBoxDialog,
  type BlackBoxEntry,
} from '#events/session/black-box.ts';
import { maskAddress, maskText, RAW_CHARS_MAX } from './mask.ts';

/**
 * What the pages of one browser told lately: rings of the last entries, and what a session's end
 * gets of them. Pure.
 */
export type Notes = {
  /** As they came; masked only at the end, since most sessions end without being asked why. */
  readonly rings: Record<Kind, Ring>;
  /** Of the page that navigated last. */
  address: string | null;
  pageCrashes: number;
  /** Entries that did not fit, and messages that were too large or too many to be read. */
  dropped: number;
};

export type Kind = 'consoleErrors' | 'failedRequests' | 'exceptions' | 'dialogs';
type Ring = Note[];
/** `at`: milliseconds since the epoch. */
export type Note = {
  at: number;
  text: string;
  address?: string;
  kind?: string;
  accepted?: boolean;
};

/** The whole record, as JSON in UTF-8. */
const BYTES_MAX = 16 * 1024;

export function createNotes(): Notes {
  const rings = { consoleErrors: [], failedRequests: [], exceptions: [], dialogs: [] };
  return { rings, address: null, pageCrashes: 0, dropped: 0 };
}

/** Adds an entry; the oldest of its kind goes at the bound. */
export function addNote(notes: Notes, kind: Kind, note: Note): void {
  const ring = notes.rings[kind];
  ring.push({
    ...note,
    text: copied(note.text),
    ...(note.address === undefined ? {} : { address: copied(note.address) }),
  });
  if (ring.length <= blackBoxEntriesMax) return;
  ring.shift();
  notes.dropped += 1;
}

export function setAddress(notes: Notes, address: string): void {
  notes.address = copied(address);
}

/** Says how the last open dialog was answered. */
export function closeDialog({ rings: { dialogs } }: Notes, accepted: boolean): void {
  const open = dialogs.findLast((dialog) => dialog.accepted === undefined);
  if (open !== undefined) open.accepted = accepted;
}

/** What is known of the end itself. */
export type Ending = Pick<
  BlackBox,
  'exitCode' | 'signal' | 'memoryPeakBytes' | 'outOfMemory' | 'thumbnailBytes'
>;

/** The masked record, of at most 16 KiB; null: nothing was noted. */
export function blackBoxOf(notes: Notes, ending: Ending = {}): BlackBox | null {
  const { rings, address, pageCrashes } = notes;
  const lists = {
    consoleErrors: rings.consoleErrors.map(said),
    failedRequests: rings.failedRequests.map(said),
    exceptions: rings.exceptions.map(said),
    dialogs: rings.dialogs.map(dialog),
  };
  const { dropped } = notes;
  const head = {
    ...(address === null ? {} : { address: maskAddress(address) }),
    ...(pageCrashes === 0 ? {} : { pageCrashes }),
    ...ending,
  };
  const left = dropped + fit(lists, BYTES_MAX - bytesOf(head) - OVERHEAD_BYTES);
  const filled = Object.entries(lists).filter(([, entries]) => entries.length > 0);
  const box = {
    ...head,
    ...Object.fromEntries(filled),
    ...(left === 0 ? {} : { dropped: left }),
  } as BlackBox;
  return Object.keys(box).length === 0 ? null : box;
}

/** The names of the lists and the count of what was dropped. */
const OVERHEAD_BYTES = 128;

/** Removes the oldest entries of the largest lists until they fit. @returns how many went */
function fit(lists: Record<Kind, (BlackBoxEntry | BlackBoxDialog)[]>, bytesMax: number): number {
  for (let removed = 0; ; removed += 1) {
    const sizes = Object.values(lists).map((list) => ({ list, bytes: bytesOf(list) }));
    const whole = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
    const [largest] = sizes.toSorted((one, other) => other.bytes - one.bytes);
    if (whole <= bytesMax || largest === undefined || largest.list.length === 0) return removed;
    largest.list.shift();
  }
}

function said({ at, text, address }: Note): BlackBoxEntry {
  return {
    at: new Date(at).toISOString(),
    text: maskText(text),
    ...(address === undefined ? {} : { address: maskAddress(address) }),
  };
}

function dialog(note: Note): BlackBoxDialog {
  const { kind = 'alert', accepted } = note;
  return { ...said(note), kind, ...(accepted === undefined ? {} : { accepted }) };
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** A copy, cut: a slice would keep the whole message in memory. */
function copied(text: string): string {
  return Buffer.from(text.slice(0, RAW_CHARS_MAX)).toString();
}
