import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionState } from '#events/session.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import type { BrowserExit, RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowser, ServedBrowsers } from '#src/browsers/served-browsers.ts';

/**
 * What an optional part does while a server's browsers serve their sessions, by the phases of that.
 * It bounds what it waits for, and nothing it returns rejects: a session ends whatever becomes of
 * its parts.
 */
export type BrowserPart = {
  /** Once, before the first browser: the browsers of this server, and where to report. */
  open?(browsers: ServedBrowsers, reporter: Reporter): void;
  /** A session has its browser. @param isAdopted an earlier process has served it until now */
  begin?(browser: RunningBrowser, session: SessionState, isAdopted: boolean): void;
  /** The session has changed, and goes on. */
  follow?(session: ActiveSession): void;
  /** The browser ends. @param exit how it has ended by itself; absent: it still runs */
  end?(browser: ServedBrowser, exit?: BrowserExit): PartEnd;
  /** Another process goes on with the sessions. */
  leave?(): Promise<void>;
};

export type ActiveSession = Extract<SessionState, { status: 'active' }>;

/** What the end of a browser waits for. */
export type PartEnd = {
  /** The browser is stopped after it. */
  beforeStop?: Promise<unknown>;
  /** The end of the session is recorded after it, with what it resolves to. */
  beforeReport?: Promise<EndFacts>;
};

/** What is recorded with the end of a session. */
export type EndFacts = { blackBox?: BlackBox };

type Parts = { readonly parts: readonly BrowserPart[] };

/** Begins the end of a browser for all parts. */
export function endParts(
  { parts }: Parts,
  browser: ServedBrowser,
  exit?: BrowserExit,
): Required<PartEnd> {
  const ends = parts.map((part) => part.end?.(browser, exit) ?? {});
  const facts = Promise.all(ends.flatMap(({ beforeReport }) => beforeReport ?? []));
  return {
    beforeStop: Promise.all(ends.flatMap(({ beforeStop }) => beforeStop ?? [])),
    beforeReport: facts.then((all) => Object.assign({}, ...all) as EndFacts),
  };
}

/** Leaves the sessions of all parts to another process. */
export async function leaveParts({ parts }: Parts): Promise<void> {
  await Promise.all(parts.flatMap((part) => part.leave?.() ?? []));
}
