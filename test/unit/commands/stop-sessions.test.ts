import { beforeEach, describe, expect, it } from 'vitest';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { stopSessions, type StopSessions } from '#src/commands/stop-sessions.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { browser, createSession, MINUTE, T0 } from '#test/support/examples.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { context, watchedLog, type Watched } from '#test/support/watched-event-store.ts';

/** What a stop of several sessions leaves when some of them could not be stopped. */

const { organizationId } = sessionRef;
const ids = ['ses_a', 'ses_b', 'ses_c'];
const metadata = newMetadata('user/ada');

let log: Watched;
beforeEach(async () => {
  log = await watchedLog();
  const asked = { id: organizationId, name: 'Acme', tier: 'max', credits: 600 } as const;
  await registerOrganization(context(log), asked, newMetadata('test'));
  for (const id of ids) {
    await handle(id, createSession({ durationMs: 10 * MINUTE, labels: { team: 'web' } }));
    await handle(id, { type: 'ActivateSession', workload: browser(`wl_${id}`), now: T0 });
  }
  log.appends.length = 0;
});

async function handle(id: string, command: SessionCommand): Promise<void> {
  const limits = { concurrentSessions: 10 };
  const of = { organizationId, id };
  const done = await handleSessionCommand(context(log), of, command, newMetadata('test'), limits);
  if (isRejection(done)) throw new Error(JSON.stringify(done));
}

async function stop(other: Partial<StopSessions> = {}) {
  const late = new AbortController().signal;
  const filter = { status: 'active', labels: { team: 'web' } } as const;
  const asked = { organizationId, filter, ids, note: 'deploy', metadata, late, ...other };
  const done = await stopSessions(context(log), asked);
  if (isRejection(done)) throw new Error(JSON.stringify(done));
  return done;
}

async function statusOf(id: string): Promise<string | undefined> {
  const session = { kind: 'session', organizationId, id } as const;
  return (await loadState<'session'>(log, session)).state?.status;
}

/** The types of events that were stored beside those of the sessions. */
const joining = () =>
  log.appends.flatMap((changes) =>
    changes.flatMap(({ aggregate, events }) =>
      aggregate.kind === 'organization' ? events.map(({ type }) => type) : [],
    ),
  );

describe('a stop of several sessions', () => {
  it('names those that could not be stopped, and a repeat stops them', async () => {
    log.beforeAppend = async ([first]) => {
      const { aggregate } = first ?? {};
      if (aggregate?.kind === 'session' && aggregate.id === 'ses_b')
        throw new Unavailable('event-log');
    };
    expect(await stop()).toMatchObject({
      stopped: ['ses_a', 'ses_c'],
      failed: [{ id: 'ses_b', error: 'UNAVAILABLE' }],
    });
    expect(await Promise.all(ids.map(statusOf))).toEqual(['stopping', 'active', 'stopping']);
    log.beforeAppend = () => Promise.resolve();
    const again = { ids: ['ses_b'], metadata: newMetadata('user/ada') };
    expect(await stop(again)).toMatchObject({ stopped: ['ses_b'], failed: [] });
    expect(joining()).toEqual(Array(2).fill('organization.sessions-stop-requested'));
  });

  it('begins none once it is late', async () => {
    const { stopped, failed } = await stop({ late: AbortSignal.abort() });
    expect([stopped, failed.map(({ id }) => id).toSorted()]).toEqual([[], ids]);
    expect(await Promise.all(ids.map(statusOf))).toEqual(ids.map(() => 'active'));
  });

  it('touches none if the event that joins them cannot be stored', async () => {
    log.beforeAppend = () => Promise.reject(new Unavailable('event-log'));
    await expect(stop()).rejects.toThrow(Unavailable);
    expect(await Promise.all(ids.map(statusOf))).toEqual(ids.map(() => 'active'));
  });

  it('leaves alone what is no longer meant, and counts what has ended', async () => {
    await handle('ses_a', { type: 'UpdateSession', labels: { team: 'shop' } });
    await handle('ses_b', { type: 'ReportBrowserClosed', closedAt: T0, now: T0 + MINUTE });
    expect(await stop()).toMatchObject({ stopped: ['ses_b', 'ses_c'], failed: [] });
    expect(await Promise.all(ids.map(statusOf))).toEqual(['active', 'stopped', 'stopping']);
  });

  it('finds the event that joins them though the answer of its append was lost', async () => {
    let isLost = false;
    const { inner } = log;
    log.append = async (changes) => {
      const [first] = changes;
      const stored = await inner.append(changes);
      if (first?.aggregate.kind !== 'organization' || isLost) return stored;
      isLost = true;
      return { outcome: 'conflict', outcomeUnknown: true };
    };
    expect((await stop()).stopped).toEqual(ids);
    const organization = { kind: 'organization', organizationId } as const;
    const joined = await inner.readLast<'organization'>(organization);
    for (const id of ids) {
      const session = { kind: 'session', organizationId, id } as const;
      const last = await inner.readLast<'session'>(session);
      expect([last?.type, last?.metadata.causationId]).toEqual([
        'session.stop-requested',
        joined?.id,
      ]);
    }
  });
});
