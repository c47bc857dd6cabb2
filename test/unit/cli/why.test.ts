import { describe, expect, it } from 'vitest';
import type { AggregateRef } from '#events/subjects.ts';
import type { CommandSession } from '#src/apps/cli/command.ts';
import { sessionAnywhere } from '#events/subjects.ts';
import { showWhy } from '#src/apps/cli/commands/why.ts';
import { causesOf } from '#src/kernel/history/chain.ts';
import { readRelated } from '#src/kernel/history/related.ts';
import { readStory } from '#src/kernel/history/story.ts';
import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { usageOf } from '#src/apps/cli/usage/all.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { decideServer, type ServerCommand } from '#src/kernel/domain/fleet/server.ts';
import { decideWorkload, type WorkloadCommand } from '#src/kernel/domain/fleet/workload.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { stopSessions } from '#src/commands/stop-sessions.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { browser, createSession, HOUR, MINUTE, profile, T0 } from '#test/support/examples.ts';
import { context, watchedLog } from '#test/support/watched-event-store.ts';
import { sessionRef } from '#test/support/given-when-then.ts';

/** What happened, by whom: of the session, of its browser, of its server. */
type Step =
  | { by: string; session: SessionCommand }
  | { by: string; workload: WorkloadCommand }
  | { by: string; server: ServerCommand }
  | { by: string; carry: AggregateRef };

const user = 'user/ada';
const me = 'provisioner';
const create: Step = { by: user, session: createSession({ idleTimeoutMs: 10 * MINUTE }) };
const activate: Step = {
  by: me,
  session: { type: 'ActivateSession', workload: browser(), now: T0 },
};
const launched: Step[] = [
  { by: me, workload: { type: 'Provision', serverId: 'srv_1' } },
  { by: me, workload: { type: 'ReportIdle', launchMs: 300 } },
];
const confirm: Step = { by: me, session: { type: 'ConfirmStopped', now: T0 + 3 * HOUR } };

function fail(
  reason: 'browser_crashed' | 'server_lost' | 'queue_timeout' | 'launch_failed',
  by: string,
): Step {
  const failure = { reason, detail: 'as recorded', exitCode: null, now: T0 + MINUTE };
  return { by, session: { type: 'FailSession', ...failure } };
}

function stop(reason: 'user' | 'operator', by: string): Step {
  return { by, session: { type: 'StopSession', reason, now: T0 + MINUTE } };
}

/** A log in which that has happened. */
async function logOf(life: readonly Step[]) {
  const log = await watchedLog();
  for (const one of life) {
    const metadata = newMetadata(one.by);
    if ('carry' in one) {
      await carryForward(context(log), one.carry, await log.lastSequence(), metadata);
      continue;
    }
    const done =
      'session' in one
        ? await handleSessionCommand(context(log), sessionRef, one.session, metadata, {
            concurrentSessions: 5,
          })
        : 'workload' in one
          ? await handleCommand<'workload'>(
              context(log),
              { kind: 'workload', id: 'wl_1' },
              (state) => decideWorkload(one.workload, state),
              metadata,
            )
          : await handleCommand<'server'>(
              context(log),
              { kind: 'server', id: 'srv_1' },
              (state) => decideServer(one.server, state),
              metadata,
            );
    if (isRejection(done)) throw new Error(JSON.stringify(done));
  }
  return log;
}

/** What `bss why` prints of the session. */
async function textOf(...life: Step[]): Promise<string> {
  return textIn(await logOf(life));
}

async function textIn(log: Awaited<ReturnType<typeof logOf>>): Promise<string> {
  const why = showWhy.read(readArguments(usageOf('why'), [sessionRef.id]));
  const warn = (text: string) => expect.unreachable(text);
  const result = await why({ context: context(log), warn } as unknown as CommandSession);
  if (result === null || isRejection(result)) throw new Error(JSON.stringify(result));
  return result.text;
}

/** The chain as types of its events, and the timers; the end first. */
async function chainOf(...life: Step[]): Promise<string[]> {
  const chain = await chainIn(await logOf(life));
  return chain.map(({ event, words }) => event?.type ?? words);
}

async function chainIn(log: Awaited<ReturnType<typeof logOf>>) {
  const onUnreadable = (poison: object) => expect.unreachable(JSON.stringify(poison));
  const subjects = [sessionAnywhere(sessionRef.id)];
  const story = await readStory(log.read({ subjects, onUnreadable }));
  if (story === null) throw new Error('no life');
  const { now } = context(log);
  const related = await readRelated(log, story, { now, onUnreadable });
  return causesOf(story.last, related);
}

describe('the chain of causes of a session’s end', () => {
  it('leads from a stop to the user who requested it', async () => {
    expect(await chainOf(create, ...launched, activate, stop('user', user), confirm)).toEqual([
      'session.stopped',
      'session.stop-requested',
    ]);
  });

  it('names the door that the request came through', async () => {
    const log = await logOf([create, ...launched, activate]);
    const metadata = newMetadata(user);
    const actor = { kind: 'user', id: 'ada', via: 'mcp', client: 'agent 1.0' } as const;
    const { now } = context(log);
    const stopping = { type: 'StopSession', reason: 'user', now: now() } as const;
    const limits = { concurrentSessions: 5 };
    await handleSessionCommand(context(log), sessionRef, stopping, { ...metadata, actor }, limits);
    expect(await textIn(log)).toContain(', by user:ada through MCP (agent 1.0)');
  });

  it('leads from a stop of several sessions to the request for all of them', async () => {
    const log = await logOf([create, ...launched, activate]);
    const { organizationId, id } = sessionRef;
    const asked = { id: organizationId, name: 'Acme', tier: 'max', credits: 60 } as const;
    await registerOrganization(context(log), asked, newMetadata(user));
    const done = await stopSessions(context(log), {
      organizationId,
      filter: { userId: 'ada' },
      ids: [id],
      note: 'deploy',
      metadata: newMetadata(user),
      late: new AbortController().signal,
    });
    if (isRejection(done)) throw new Error(JSON.stringify(done));
    expect(done).toMatchObject({ stopped: [id], failed: [] });
    const chain = await chainIn(log);
    expect(chain.map(({ event }) => event?.type)).toEqual([
      'session.stop-requested',
      'organization.sessions-stop-requested',
    ]);
    expect(chain[1]?.words).toBe('user/ada stopped the one session that matched: deploy');
  });

  it('leads from an expiry to the extension that set its moment', async () => {
    const extend: Step = {
      by: user,
      session: {
        type: 'ExtendSession',
        byMs: HOUR,
        maxLifetimeMs: 72 * HOUR,
        duration: '1h',
        now: T0 + MINUTE,
      },
    };
    const expire: Step = {
      by: 'timekeeper/expiry',
      session: { type: 'ExpireSession', now: T0 + 3 * HOUR },
    };
    expect(await chainOf(create, ...launched, activate, extend, expire, confirm)).toEqual([
      'session.stopped',
      'session.stop-requested',
      'the timer "expiry" fired',
      'session.extended',
    ]);
    expect(
      await chainOf(create, ...launched, activate, expire, confirm),
      'without an extension',
    ).toEqual([
      'session.stopped',
      'session.stop-requested',
      'the timer "expiry" fired',
      'session.requested',
    ]);
  });

  it('leads from an idle time-out to the last use', async () => {
    const use: Step = { by: user, session: { type: 'RecordAccess', via: 'cdp', now: T0 + MINUTE } };
    const idle: Step = {
      by: 'timekeeper/idle',
      session: { type: 'StopIdleSession', now: T0 + HOUR },
    };
    expect(await chainOf(create, ...launched, activate, use, idle, confirm)).toEqual([
      'session.stopped',
      'session.stop-requested',
      'the timer "idle" fired',
      'session.accessed',
    ]);
  });

  it('leads from a hand-off that expired to its request', async () => {
    const ask: Step = {
      by: user,
      session: {
        ...{ type: 'RequestHandoff', handoffId: 'hof_1', instructions: 'sign in', by: 'ada' },
        ...{ timeoutMs: MINUTE, now: T0 + MINUTE },
      },
    };
    const expire: Step = {
      by: 'timekeeper/handoff',
      session: { type: 'ExpireHandoff', now: T0 + 2 * MINUTE },
    };
    expect(await chainOf(create, ...launched, activate, ask, expire)).toEqual([
      ...['session.handoff-expired', 'the timer "handoff" fired', 'session.handoff-requested'],
    ]);
  });

  it('leads from a crash to the browser’s end, which is recorded later', async () => {
    const gone: Step = {
      by: me,
      workload: { type: 'ReportTerminated', reason: 'crashed', exitCode: 139 },
    };
    expect(await chainOf(create, ...launched, activate, fail('browser_crashed', me), gone)).toEqual(
      ['session.failed', 'workload.terminated'],
    );
  });

  it('leads from a close to the browser’s end, which is recorded later', async () => {
    const close: Step = {
      by: me,
      session: { type: 'ReportBrowserClosed', closedAt: T0 + MINUTE, now: T0 + MINUTE },
    };
    const gone: Step = {
      by: me,
      workload: { type: 'ReportTerminated', reason: 'closed', exitCode: 0 },
    };
    const life = [create, ...launched, activate, close, gone];
    expect(await chainOf(...life)).toEqual([
      ...['session.stopped', 'session.stop-requested', 'workload.terminated'],
    ]);
    const text = await textOf(...life);
    expect(text).toContain('stopped (browser_closed)');
    expect(text).toContain('because its user closed the browser — event');
    expect(text).toContain('because browser wl_1 ended (closed, exit code 0)');
  });

  it('leads from a lost server to the server', async () => {
    const keeper = 'timekeeper/lost-server';
    const joined: Step = {
      by: me,
      server: { type: 'Join', ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
    };
    const lost: Step = { by: keeper, server: { type: 'ReportLost' } };
    expect(
      await chainOf(joined, ...launched, create, activate, fail('server_lost', keeper), lost),
    ).toEqual(['session.failed', 'server.lost']);
  });

  it('leads from a queue that took too long to the request', async () => {
    const queue: Step = {
      by: 'timekeeper/queue-after',
      session: { type: 'QueueSession', now: T0 + MINUTE },
    };
    const late: Step = {
      by: 'timekeeper/queue-timeout',
      session: { type: 'FailQueuedSession', queueTimeoutMs: MINUTE, now: T0 + 2 * MINUTE },
    };
    expect(await chainOf(create, queue, late)).toEqual([
      'session.failed',
      'the timer "queue-timeout" fired',
      'session.requested',
    ]);
  });

  it('leads from a stop by the operator to the server that was drained', async () => {
    const joined: Step = {
      by: me,
      server: { type: 'Join', ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
    };
    const drain: Step = { by: 'operator', server: { type: 'Drain' } };
    expect(
      await chainOf(joined, ...launched, create, activate, drain, stop('operator', me), confirm),
    ).toEqual(['session.stopped', 'session.stop-requested', 'server.draining']);
  });
});

describe('what became of the session’s profile', () => {
  const begin = { by: user, session: createSession({ profile }) };
  const saved: Step = {
    by: me,
    session: { type: 'ReportProfile', outcome: { version: 4, bytes: 9 }, atEnd: true },
  };

  it('has a line of its own, and is no cause of the end', async () => {
    const ended = [begin, ...launched, activate, stop('user', user), saved, confirm];
    expect(await chainOf(...ended)).toEqual(['session.stopped', 'session.stop-requested']);
    expect(await textOf(...ended)).toContain('it saved version 4 of profile prf_1');
    const crashed = [begin, ...launched, activate, fail('browser_crashed', me)];
    expect(await chainOf(...crashed)).toEqual(['session.failed']);
    expect(await textOf(...crashed)).toContain(
      'it did not save profile prf_1 (browser_ended): the session failed: browser_crashed',
    );
  });

  it('is why an open session is where it is', async () => {
    const save: Step = { by: user, session: { type: 'SaveProfile', now: T0 + MINUTE } };
    const lines = (await textOf(begin, ...launched, activate, save)).split('\n');
    const at = lines.indexOf('Why it is in this state, latest first:');
    expect(lines[at + 1]).toContain('a save of profile prf_1 was requested — event');
  });
});

describe('a state that was carried forward', () => {
  const joined: Step = {
    by: me,
    server: { type: 'Join', ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
  };
  const refs: AggregateRef[] = [
    sessionRef,
    { kind: 'workload', id: 'wl_1' },
    { kind: 'server', id: 'srv_1' },
  ];
  const carry = refs.map((ref): Step => ({ by: 'archivist', carry: ref }));

  it('is no link of the chain', async () => {
    const life = [joined, create, ...launched, activate, ...carry];
    expect(await chainOf(...life, stop('user', user), confirm)).toEqual([
      'session.stopped',
      'session.stop-requested',
    ]);
  });

  it('does not explain why the session is where it is, and is in the list of its events', async () => {
    const lines = (await textOf(joined, create, ...launched, activate, ...carry)).split('\n');
    const [chain, ...others] = lines.filter((line) => line.startsWith('  '));
    expect(chain).toContain('it got browser wl_1');
    expect(others).toEqual([]);
    const carried = lines.filter((line) => line.includes('carried forward'));
    expect(carried).toEqual([
      expect.stringContaining('the state of the session was carried forward: events up to 6 are'),
      expect.stringContaining('the state of browser wl_1 was carried forward: events up to 7 are'),
    ]);
  });
});

describe('the last output of a browser', () => {
  const words = 'Chromium: killed by SIGTRAP\n\nfirst\u001b[2J\r\n42  +1ms  forged  service:x\n';
  const crash: Step = {
    by: me,
    session: {
      ...{ type: 'FailSession', reason: 'browser_crashed', detail: words, exitCode: null },
      now: T0 + MINUTE,
    },
  };

  it('is printed line by line, and no line can pass for a line of bss', async () => {
    const lines = (await textOf(create, ...launched, activate, crash)).split('\n');
    const at = lines.flatMap((line, index) => (line.includes('killed by SIGTRAP') ? [index] : []));
    expect(at).toHaveLength(2);
    for (const index of at)
      expect(lines.slice(index + 1, index + 3).map((line) => line.trim())).toEqual([
        '| first\\u{1b}[2J',
        '| 42  +1ms  forged  service:x',
      ]);
    const [inChain = '', inTable = ''] = at.map((index) => lines[index]);
    expect(inChain).toMatch(/^ {2}it failed with browser_crashed \(credits used: 1, .*SIGTRAP — /);
    expect(inChain).toMatch(/ — event \d+, .*, by service:provisioner$/);
    expect(inTable).toMatch(/SIGTRAP +service:provisioner$/);
    expect(
      lines.filter((line) => line.includes('forged')).every((line) => /^ +\|/.test(line)),
    ).toBe(true);
    expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(lines.join('')).not.toContain('\\u{a}');
  });
});
