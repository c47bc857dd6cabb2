import type { BlackBox } from '#events/session/black-box.ts';
import type { SessionState } from '#events/session.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import type { BrowserExit, RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowser, ServedBrowsers } from '#src/browsers/served-browsers.ts';

/**
 * What an optional part does while a server's browsers serve their sessions, by the phases of that.
 * It bounds what it waits for. A part that fails is logged: a session has its browser, and ends,
 * whatever becomes of its parts.
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

type Parts = { readonly parts: readonly BrowserPart[]; readonly log: Pick<Logger, 'error'> };

/** A session has its browser, for all parts. */
export function beginParts(
  pool: Parts,
  browser: RunningBrowser,
  session: SessionState,
  isAdopted: boolean,
): void {
  for (const part of pool.parts)
    attempt(pool, 'begin', () => part.begin?.(browser, session, isAdopted));
}

/** A session has changed and goes on, for all parts. */
export function followParts(pool: Parts, session: ActiveSession): void {
  for (const part of pool.parts) attempt(pool, 'follow', () => part.follow?.(session));
}

/** Begins the end of a browser for all parts. What it returns never rejects. */
export function endParts(
  pool: Parts,
  browser: ServedBrowser,
  exit?: BrowserExit,
): { beforeStop: Promise<void>; beforeReport: Promise<EndFacts> } {
  const ends = pool.parts.map(
    (part) => attempt(pool, 'end', () => part.end?.(browser, exit)) ?? {},
  );
  const stops = ends.map(({ beforeStop }) => outcomeOf(pool, 'end', beforeStop));
  const facts = ends.map(({ beforeReport }) => outcomeOf(pool, 'end', beforeReport));
  return {
    beforeStop: Promise.all(stops).then(() => undefined),
    beforeReport: Promise.all(facts).then((all) => Object.assign({}, ...all) as EndFacts),
  };
}

/** Leaves the sessions of all parts to another process. Never rejects. */
export async function leaveParts(pool: Parts): Promise<void> {
  const leaving = pool.parts.map((part) => attempt(pool, 'leave', () => part.leave?.()));
  await Promise.all(leaving.map((one) => outcomeOf(pool, 'leave', one)));
}

type Phase = 'begin' | 'follow' | 'end' | 'leave';

/** What the part returns; undefined: it threw, which is logged. */
function attempt<Result>(pool: Parts, phase: Phase, call: () => Result): Result | undefined {
  try {
    return call();
  } catch (error) {
    failed(pool, phase, error);
    return undefined;
  }
}

/** What the promise resolves to; undefined: there is none, or it rejects, which is logged. */
async function outcomeOf<Result>(
  pool: Parts,
  phase: Phase,
  promise: Promise<Result> | undefined,
): Promise<Result | undefined> {
  return promise?.catch((error: unknown) => failed(pool, phase, error));
}

function failed({ log }: Parts, phase: Phase, error: unknown): undefined {
  log.error({ err: error, phase }, 'a part of a server of browsers failed; the session goes on');
}
