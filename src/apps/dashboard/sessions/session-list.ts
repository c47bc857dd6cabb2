import { signal } from '@preact/signals';
import { untilUnitsAreSpare } from '../api/allowance.ts';
import { connection, listen } from '../live/organization-events.ts';
import { credential } from '../api/credential.ts';
import { read, RequestFailed, sentenceOf } from '../api/api-client.ts';
import {
  byCreation,
  rowOfDetails,
  rowOfEvent,
  rowOfListed,
  type ListedSession,
  type Row,
  type SessionDetails,
} from './rows.ts';

const PAGE = 100;
const ROWS_MAX = 10_000;
/** Rows beyond that are dropped together. */
const ROWS_SPARE = 100;
const RETRY_MS = 3000;

/** All rows, newest first. */
export const rows = signal<readonly Row[]>([]);
export const state = signal<{ loading: boolean; failure: string | null }>({
  loading: true,
  failure: null,
});
/** Sessions of the organization that are not loaded: not yet, or older than the newest 10,000. */
export const leftOut = signal(0);

const byId = new Map<string, Row>();
/** Sessions of which an event has told: a page of the list may be older than the event. */
const told = new Set<string>();
/** Sessions whose details were requested. */
const detailed = new Set<string>();
let isScheduled = false;
let hasNew = true;
let generation = 0;
/** Sessions that the organization has, shown or not. */
let total = 0;

/** The organization's sessions: loaded once, then kept current by its events. */
export const sessionList = { start, reload: () => load(0), readDetails, readLabel };

let startedWith: string | null = null;
let stop = () => {};

/** Starts at the first look at the list, and goes on until another key signs in. */
function start(): void {
  if (startedWith === credential.value) return;
  startedWith = credential.value;
  generation += 1;
  stop();
  byId.clear();
  told.clear();
  detailed.clear();
  hasNew = true;
  total = 0;
  leftOut.value = 0;
  rows.value = [];
  state.value = { loading: true, failure: null };
  stop = listen({
    // The stream is open first: what changes while the pages are read arrives as an event.
    onOpen(isGap) {
      if (!isGap) return;
      told.clear();
      void load(0);
    },
    onEvent(event) {
      const row = rowOfEvent(event);
      if (row === null) return;
      told.add(row.id);
      if (!byId.has(row.id) && event.type === 'session.requested') total += 1;
      put(row);
    },
    onBroken() {
      state.value = { ...state.value, loading: false };
    },
  });
  if (!connection.value.isOpen) void showFirst();
}

/** Shows the newest rows while the stream of events is being opened; then they are read again. */
async function showFirst(): Promise<void> {
  const key = startedWith;
  const page = await readPage(0, '').catch(() => null);
  if (page === null || key !== startedWith) return;
  total = Math.max(total, page.total);
  for (const listed of page.sessions) if (!byId.has(listed.id)) put(rowOfListed(listed, undefined));
}

/**
 * Reads the list page by page, newest first; a row that moved to a later page is read twice. After
 * a failure for a passing reason it goes on with the page that failed.
 */
async function load(from: number): Promise<void> {
  generation += 1;
  const mine = generation;
  state.value = { ...state.value, loading: true, failure: null };
  let offset = from;
  try {
    let count = Infinity;
    for (; offset < Math.min(count, ROWS_MAX); offset += PAGE) {
      const page = await readPage(offset, '');
      if (mine !== generation) return;
      count = page.total;
      total = count;
      for (const listed of page.sessions)
        if (!told.has(listed.id)) put(rowOfListed(listed, byId.get(listed.id)));
    }
    state.value = { ...state.value, loading: false };
    showSoon();
  } catch (error) {
    if (mine !== generation) return;
    state.value = { ...state.value, loading: false, failure: sentenceOf(error) };
    if (!(error instanceof RequestFailed && error.isTransient)) return;
    setTimeout(() => mine === generation && void load(offset), error.retryAfterMs ?? RETRY_MS);
  }
}

/** The first page is waited for; later ones leave half of the rate limit to others. */
async function readPage(offset: number, more: string) {
  if (offset > 0) await untilUnitsAreSpare();
  return await read<{ sessions: ListedSession[]; total: number }>(
    `/api/sessions?limit=${PAGE}&offset=${offset}${more}`,
  );
}

/**
 * Learns which sessions have a label: the list of the API does not show labels. After a failure for
 * a passing reason it goes on with the page that failed, until another key signs in.
 */
async function readLabel(label: string, from = 0): Promise<void> {
  const key = credential.value;
  const border = label.indexOf('=');
  const own = { [label.slice(0, border)]: label.slice(border + 1) };
  let offset = from;
  try {
    let count = Infinity;
    for (; offset < Math.min(count, ROWS_MAX); offset += PAGE) {
      const page = await readPage(offset, `&label=${encodeURIComponent(label)}`);
      if (key !== credential.value) return;
      count = page.total;
      for (const listed of page.sessions) {
        const known = byId.get(listed.id);
        const row = told.has(listed.id) && known ? known : rowOfListed(listed, known);
        put({ ...row, labels: { ...row.labels, ...own } });
      }
    }
  } catch (error) {
    if (key !== credential.value || !(error instanceof RequestFailed && error.isTransient)) return;
    setTimeout(() => void readLabel(label, offset), error.retryAfterMs ?? RETRY_MS);
  }
}

/** Reads what the list does not tell of rows that are looked at, each once. */
async function readDetails(shown: readonly Row[]): Promise<void> {
  for (const { id } of shown) {
    if (detailed.has(id) || (byId.get(id)?.userId ?? null) !== null) continue;
    detailed.add(id);
    await untilUnitsAreSpare();
    const details = await read<SessionDetails>(`/api/sessions/${encodeURIComponent(id)}`).catch(
      () => null,
    );
    if (details === null) detailed.delete(id);
    else if ((byId.get(id)?.userId ?? null) === null) put(rowOfDetails(details));
  }
}

function put(row: Row): void {
  hasNew ||= !byId.has(row.id);
  byId.set(row.id, row);
  showSoon();
}

/** Shows all that has changed at the next frame, together. */
function showSoon(): void {
  if (isScheduled) return;
  isScheduled = true;
  // A tab in the background has no frames.
  const show = document.hidden
    ? (task: () => void) => setTimeout(task, 250)
    : requestAnimationFrame;
  show(() => {
    isScheduled = false;
    // A row never moves: its creation does not change.
    rows.value = hasNew
      ? bounded([...byId.values()].toSorted(byCreation))
      : rows.value.map((known) => byId.get(known.id) ?? known);
    hasNew = false;
    leftOut.value = Math.max(0, total - rows.value.length);
  });
}

/** A tab that stays open for days keeps the newest rows, as many as it loads. */
function bounded(sorted: Row[]): readonly Row[] {
  if (sorted.length <= ROWS_MAX + ROWS_SPARE) return sorted;
  for (const { id } of sorted.slice(ROWS_MAX))
    for (const known of [byId, told, detailed]) known.delete(id);
  return sorted.slice(0, ROWS_MAX);
}
