import type { BrowserOptions } from '#events/session.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import type { RunningBrowser } from '../browsers/browsers.ts';

/**
 * A browser this process is in charge of.
 * launching → idle → busy → ending, or launching → busy; anything → ending → gone. One that is
 * adopted begins as idle or busy.
 */
export type Member = {
  workloadId: string;
  /** What it was launched as; it serves only who asked for just that. */
  options: BrowserOptions;
  phase: 'launching' | 'idle' | 'busy' | 'ending';
  /** Set once it has been launched. */
  browser: RunningBrowser | null;
  /** Whom it serves; set while busy, and kept while ending. */
  session: SessionIdentity | null;
  /** What is being reported of it to the log, in order. */
  reports: Promise<void>;
};

/**
 * The browsers of this server that this process is in charge of; nothing else knows them sooner.
 */
export type Roster = ReturnType<typeof createRoster>;

/** @param onChange called after each change, for whoever waits for room or for browsers */
export function createRoster(onChange: () => void) {
  const members = new Map<string, Member>();

  function put(member: Member): Member {
    members.set(member.workloadId, member);
    onChange();
    return member;
  }
  function add(workloadId: string, options: BrowserOptions): Member {
    const nothing = { browser: null, session: null, reports: Promise.resolve() };
    return put({ workloadId, options, phase: 'launching', ...nothing });
  }
  /** One that an earlier process launched: it serves the session, or waits where that is null. */
  function adopt(
    browser: RunningBrowser,
    options: BrowserOptions,
    session: SessionIdentity | null,
  ): Member {
    const { workloadId } = browser;
    const phase = session === null ? 'idle' : 'busy';
    return put({ workloadId, options, phase, browser, session, reports: Promise.resolve() });
  }
  function move(member: Member, phase: Member['phase']): void {
    member.phase = phase;
    onChange();
  }
  function remove(workloadId: string): void {
    members.delete(workloadId);
    onChange();
  }
  /** The browser that has waited longest; all that wait were launched with the defaults. */
  function longestIdle(): Member | null {
    for (const member of members.values()) if (member.phase === 'idle') return member;
    return null;
  }
  function counts() {
    const counted = { launching: 0, idle: 0, busy: 0, ending: 0 };
    for (const { phase } of members.values()) counted[phase] += 1;
    return counted;
  }
  return {
    add,
    adopt,
    move,
    remove,
    longestIdle,
    counts,
    get: (workloadId: string) => members.get(workloadId) ?? null,
    all: () => [...members.values()],
    ids: () => new Set(members.keys()),
  };
}
