import { expect, it, vi } from 'vitest';
import type { EventWithState } from '#events/events.ts';
import type { SessionEvent } from '#events/session.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import { createOverdueCounter } from '#src/roles/api/health/overdue-sessions.ts';
import { endsAt } from '#src/kernel/domain/session/ends-at.ts';
import { foldAll } from '#test/support/given-when-then.ts';
import {
  activated,
  assigned,
  browser,
  failed,
  HOUR,
  MINUTE,
  queued,
  requested,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const queueTimeoutMs = 5 * MINUTE;
const idle = requested({ idleTimeoutMs: 10 * MINUTE });
const lives: Record<string, { events: SessionEvent[]; end: number | null }> = {
  waiting: { events: [requested(), queued], end: T0 + queueTimeoutMs },
  launching: { events: [requested(), assigned()], end: T0 + 2 * HOUR },
  active: { events: [requested(), activated()], end: T0 + 2 * HOUR },
  // With the minute in which a use is recorded once.
  idle: { events: [idle, activated(T0, browser('wl_2'))], end: T0 + 11 * MINUTE },
  stopping: { events: [requested(), activated(), stopRequested()], end: null },
  failed: { events: [requested(), failed()], end: null },
};

function stateOf(id: string, events: SessionEvent[]) {
  const aggregate = { kind: 'session', organizationId: `org_${id}`, id } as const;
  const state = foldAll<'session'>(aggregate, null, events);
  if (state === null) throw new Error('no session');
  return { aggregate, state };
}

async function open() {
  const views = createMemoryViews();
  const sequence = Object.keys(lives).length;
  async function write<View>(projection: Projection<View>): Promise<void> {
    const writes = Object.entries(lives).map(([id, { events }], index) => {
      const { aggregate, state } = stateOf(id, events);
      const event = { ...events.at(-1), aggregate, state } as unknown as EventWithState;
      const view = projection.view(event);
      if (view === null) throw new Error('no view');
      const { names = [], order = 0 } = projection.lists?.(view, event) ?? {};
      const key = projection.key(event) ?? '';
      return { key, sequence: index + 1, view: JSON.stringify(view), lists: names, order };
    });
    await views.write(projectionId(projection), { after: 0, upTo: sequence, writes });
  }
  await write(organizationSessions);
  await write(sessionView);
  const view = JSON.stringify({ id: 'srv_1' });
  const server = { key: 'srv_1', sequence: 1, view, lists: [currentServers], order: 1 };
  await views.write(projectionId(servers), { after: 0, upTo: 1, writes: [server] });
  return views;
}

it('a session ends by time at the first of expiry, idle timeout and queue timeout', () => {
  for (const [id, { events, end }] of Object.entries(lives))
    expect([id, endsAt(stateOf(id, events).state, queueTimeoutMs)]).toEqual([id, end]);
});

it('counts the sessions of all organizations that are more than a minute late', async () => {
  await using views = await open();
  const countAt = (at: number) => createOverdueCounter({ views, now: () => at, queueTimeoutMs })();
  expect(await countAt(T0 + queueTimeoutMs + MINUTE)).toBe(0);
  expect(await countAt(T0 + queueTimeoutMs + MINUTE + 1)).toBe(1);
  expect(await countAt(T0 + 12 * MINUTE + 1)).toBe(2);
  expect(await countAt(T0 + 2 * HOUR + MINUTE + 1)).toBe(4);
});

it('counts at most twice a minute, and again at once after a failure', async () => {
  await using inner = await open();
  const page = vi.fn<Views['page']>(inner.page);
  const count = createOverdueCounter({
    views: { ...inner, page },
    now: () => T0 + 3 * HOUR,
    queueTimeoutMs,
  });
  page.mockRejectedValueOnce(new Error('away'));
  await expect(count()).rejects.toThrow('away');
  expect(await count()).toBe(4);
  const reads = page.mock.calls.length;
  expect(await count()).toBe(4);
  expect(page.mock.calls.length).toBe(reads);
});
