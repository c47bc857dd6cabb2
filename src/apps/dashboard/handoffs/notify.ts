import { signal } from '@preact/signals';
import { go } from '../shell/router.ts';
import type { Handoff } from './handoff.ts';

const isOffered = 'Notification' in globalThis;

/** Whether the browser tells of new requests; `default`: it was not asked yet. */
export const permission = signal<NotificationPermission>(
  isOffered ? Notification.permission : 'denied',
);

/** Only by a click: browsers refuse the question otherwise. */
export async function askPermission(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

/** Tells of requests that were not in the inbox before, unless the page is looked at. */
export function notifyOf(before: readonly Handoff[] | null, now: readonly Handoff[]): void {
  if (before === null || permission.value !== 'granted' || !document.hidden) return;
  const known = new Set(before.map(({ id }) => id));
  for (const { id, status, instructions } of now) {
    if (status !== 'requested' || known.has(id)) continue;
    notify(id, instructions);
  }
}

function notify(id: string, instructions: string): void {
  try {
    const shown = new Notification('A person is asked for', { body: instructions, tag: id });
    shown.addEventListener('click', () => {
      focus();
      go('/handoffs');
      shown.close();
    });
  } catch {
    // Chrome on Android grants the permission but makes no notification for a page.
    permission.value = 'denied';
  }
}
