import { computed, signal } from '@preact/signals';
import type { CloudEvent } from '#events/cloud-event.ts';
import type { SessionEvent } from '#events/session.ts';
import { untilUnitsAreSpare } from '../api/allowance.ts';
import { read, RequestFailed, sentenceOf } from '../api/api-client.ts';
import { listen, sessionOf } from '../live/organization-events.ts';
import { place } from '../shell/router.ts';
import type { Handoff } from './handoff.ts';
import { notifyOf, permission } from './notify.ts';

const RETRY_MS = 3000;
/** A reading without an answer has failed after this. */
const ANSWER_MS = 30_000;
/** Events arrive in groups: the inbox is read once for all of them. */
const TOGETHER_MS = 100;
/** The end of a session is also that of its hand-off, without an event of its own. */
const ENDS: readonly string[] = [
  'session.stop-requested',
  'session.stopped',
  'session.failed',
] satisfies SessionEvent['type'][];

/** The open hand-offs of the organization, oldest first; null: not read yet. */
export const inbox = signal<{ handoffs: readonly Handoff[] | null; failure: string | null }>({
  handoffs: null,
  failure: null,
});

/** How many wait for a person. */
export const waitingCount = computed(
  () => inbox.value.handoffs?.filter(({ status }) => status === 'requested').length ?? 0,
);

/** The reading under way, and whether something has changed since it was asked. */
let current: { isStale: boolean } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
/** When the next reading is due, and before when the service asked for none. */
let dueAt = Infinity;
let notBefore = 0;
/** Whether a reading was left out in a tab that is not looked at. */
let isMissed = false;

/** Reads the inbox; while it is being read, once more after that. */
export async function readInbox(): Promise<void> {
  clearTimer();
  isMissed = false;
  if (current !== null) {
    current.isStale = true;
    return;
  }
  const own = { isStale: false };
  current = own;
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const { handoffs } = await read<{ handoffs: Handoff[] }>('/api/handoffs', signal);
    if (current !== own) return;
    const before = inbox.value.handoffs;
    inbox.value = { handoffs, failure: null };
    notifyOf(before, handoffs);
  } catch (error) {
    if (current !== own) return;
    inbox.value = { ...inbox.value, failure: sentenceOf(error) };
    const refusal = error instanceof RequestFailed ? error : null;
    notBefore = Date.now() + (refusal?.retryAfterMs ?? RETRY_MS);
    own.isStale ||= refusal?.isTransient ?? true;
  }
  current = null;
  if (own.isStale) readSoon(TOGETHER_MS);
}

/** Reads at once what is due: who opens the page of hand-offs waits for it. */
export function readPending(): void {
  if (timer !== undefined || isMissed) void readInbox();
}

function readSoon(ms: number): void {
  const at = Math.max(Date.now() + ms, notBefore);
  if (at >= dueAt) return;
  clearTimer();
  dueAt = at;
  timer = setTimeout(() => void readNow(), at - Date.now());
}

/**
 * A reading costs ten units of the organization's rate limit: a hidden tab that may not notify
 * leaves it out until it is looked at, and a page without hand-offs leaves half of the units.
 */
async function readNow(): Promise<void> {
  const own = timer;
  isMissed = document.hidden && permission.value !== 'granted';
  if (isMissed) {
    clearTimer();
    return;
  }
  const name = place.value?.name;
  if (name !== 'handoffs' && name !== 'session') await untilUnitsAreSpare();
  if (own === timer) await readInbox();
}

function readMissed(): void {
  if (isMissed && !document.hidden) readSoon(0);
}

function clearTimer(): void {
  clearTimeout(timer);
  timer = undefined;
  dueAt = Infinity;
}

/** Reads the inbox at each event that changes it. @returns stops it */
export function followInbox(): () => void {
  const stop = listen({
    onOpen: () => readSoon(0),
    onEvent: (event) => {
      if (changesInbox(event)) readSoon(TOGETHER_MS);
    },
  });
  document.addEventListener('visibilitychange', readMissed);
  return () => {
    stop();
    document.removeEventListener('visibilitychange', readMissed);
    clearTimer();
    current = null;
    notBefore = 0;
    inbox.value = { handoffs: null, failure: null };
  };
}

function changesInbox(event: CloudEvent): boolean {
  if (event.type.startsWith('session.handoff-')) return true;
  if (!ENDS.includes(event.type)) return false;
  const session = sessionOf(event);
  return inbox.value.handoffs?.some((handoff) => handoff.session_id === session) ?? false;
}
