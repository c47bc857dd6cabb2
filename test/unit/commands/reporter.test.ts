import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { Unavailable } from '#src/kernel/errors.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { OrganizationState } from '#events/organization.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { handleProfileCommand } from '#src/commands/session-profile.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createReporter, type Reporter } from '#src/commands/reporter.ts';
import { browser, createSession, T0 } from '#test/support/examples.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import {
  context,
  newCause,
  once,
  watchedLog,
  type Watched,
} from '#test/support/watched-event-store.ts';

/**
 * What a server reports while its event store is away: an append may be stored without an answer,
 * and the report is made again.
 */

const { organizationId, id } = sessionRef;
const session = { organizationId, id };
const PROFILE = 'prf_1';

let store: Watched;
let reporter: Reporter;
beforeEach(async () => {
  store = await watchedLog();
  const commands = context(store);
  const log = pino({ level: 'silent' });
  reporter = createReporter(commands, log, new AbortController().signal);
  const create = { type: 'CreateProfile', name: 'shop', by: 'user_1', now: T0 } as const;
  const organization = { kind: 'organization', organizationId } as const;
  const register = { type: 'RegisterOrganization', name: 'Acme', tier: 'max' } as const;
  const registered = (state: OrganizationState | null) => decideOrganization(register, state);
  await handleCommand<'organization'>(commands, organization, registered, newCause());
  const none = () => Promise.resolve(0);
  await handleProfileCommand(commands, organizationId, PROFILE, create, newCause(), none);
  const wanted = { id: PROFILE, version: null, save: true };
  const limits = { concurrentSessions: 1 };
  await handleSessionCommand(commands, session, createSession(), newCause(), limits, wanted);
  const workload = browser();
  const activate = { type: 'ActivateSession', workload, now: T0 } as const;
  await reporter.session(session, activate, newCause());
});

/** The next append is stored; its answer is lost, and so is what asks for it. */
function loseNextAnswer(meanwhile: () => Promise<unknown> = () => Promise.resolve()): void {
  store.beforeAppend = once(async (changes) => {
    await store.inner.append(changes);
    await meanwhile();
    throw new Unavailable('event-log');
  });
}

async function typesOf(type: string): Promise<number> {
  const history = await Array.fromAsync(store.inner.history<'session'>(sessionRef));
  return history.filter((event) => event.type === type).length;
}
async function versions(): Promise<string[]> {
  const ref = { kind: 'profile', organizationId, id: PROFILE } as const;
  const { state } = await loadState<'profile'>(store.inner, ref);
  return (state?.versions ?? []).map(({ sha256 }) => sha256);
}
const archive = {
  ...{ sha256: 'ab'.repeat(32), bytes: 10, browser: '150.0.0.0' },
  contents: { origins: [], cookies: [] },
};

describe('a report that was stored without an answer, and is made again,', () => {
  it.each([true, false])('has its result, and no second version: atEnd %s', async (atEnd) => {
    loseNextAnswer();
    const saved = { profileId: PROFILE, archive, kept: 3, atEnd };
    const recorded = await reporter.profile(session, saved, newCause());
    expect(recorded).toMatchObject({ state: { id } });
    expect(await versions()).toEqual([archive.sha256]);
    expect(await typesOf('session.profile-saved')).toBe(1);
  });

  it('has its result also where its session has ended meanwhile', async () => {
    const stop = { type: 'StopSession', reason: 'operator', now: T0 } as const;
    const stopped = () => handleSessionCommand(context(store.inner), session, stop, newCause());
    const confirm = { type: 'ConfirmStopped', now: T0 } as const;
    loseNextAnswer(async () => {
      await stopped();
      await handleSessionCommand(context(store.inner), session, confirm, newCause());
    });
    const saved = { profileId: PROFILE, archive, kept: 3, atEnd: true };
    const recorded = await reporter.profile(session, saved, newCause());
    expect(recorded).toMatchObject({ state: { id } });
    expect(await versions()).toEqual([archive.sha256]);
  });

  it('adds no second file', async () => {
    loseNextAnswer();
    const added = {
      type: 'RecordFileAdded',
      fileId: 'fil_1',
      name: 'a.txt',
      bytes: 1,
      sha256: 'ab'.repeat(32),
      origin: 'download',
      now: T0,
    } as const;
    await reporter.session(session, added, newCause());
    expect(await typesOf('session.file-added')).toBe(1);
  });
});
