import { computed, signal } from '@preact/signals';
import type { CloudEvent } from '#events/cloud-event.ts';
import type { SessionEvent } from '#events/session.ts';
import { listen, sessionOf } from '../live/organization-events.ts';
import type { Handoff } from './handoff.ts';
import { notifyOf } from './notify.ts';
import { read, RequestFailed, sentenceOf } from '../api/api-client.ts';

const RETRY_MS = 3000;
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

/** The newest reading: its answer wins, however late an older one comes. */
let reading = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

export async function readInbox(): Promise<void> {
  reading += 1;
  const own = reading;
  clearTimeout(timer);
  try {
    const { handoffs } = await read<{ handoffs: Handoff[] }>('/api/handoffs');
    if (own !== reading) return;
    notifyOf(inbox.value.handoffs, handoffs);
    inbox.value = { handoffs, failure: null };
  } catch (error) {
    if (own !== reading) return;
    inbox.value = { ...inbox.value, failure: sentenceOf(error) };
    if (error instanceof RequestFailed && error.isTransient)
      readSoon(error.retryAfterMs ?? RETRY_MS);
  }
}

function readSoon(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void readInbox(), ms);
}

/** Reads the inbox at each event that changes it. @returns stops it */
export function followInbox(): () => void {
  const stop = listen({
    onOpen: () => void readInbox(),
    onEvent: (event) => {
      if (changesInbox(event)) readSoon(TOGETHER_MS);
    },
  });
  return () => {
    stop();
    clearTimeout(timer);
    reading += 1;
    inbox.value = { handoffs: null, failure: null };
  };
}

function changesInbox(event: CloudEvent): boolean {
  if (event.type.startsWith('session.handoff-')) return true;
  if (!ENDS.includes(event.type)) return false;
  const session = sessionOf(event);
  return inbox.value.handoffs?.some((handoff) => handoff.session_id === session) ?? true;
}
