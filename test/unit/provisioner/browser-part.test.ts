import { expect, it } from 'vitest';
import type { SessionState } from '#events/session.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowser } from '#src/browsers/served-browsers.ts';
import {
  beginParts,
  endParts,
  followParts,
  leaveParts,
  type ActiveSession,
  type BrowserPart,
} from '#src/roles/provisioner/browser-part.ts';

/** A server calls its parts in each phase of a session's browser; one that fails stops nothing. */

const browser = { workloadId: 'wl_1' } as ServedBrowser & RunningBrowser;
const session = { id: 'ses_1' } as SessionState & ActiveSession;
const down = () => new Error('the object store is away');
const blackBox = { entries: [] } as never;

const throwing: BrowserPart = {
  begin: () => {
    throw down();
  },
  follow: () => {
    throw down();
  },
  end: () => {
    throw down();
  },
  leave: () => {
    throw down();
  },
};
const rejecting: BrowserPart = {
  end: () => ({ beforeStop: Promise.reject(down()), beforeReport: Promise.reject(down()) }),
  leave: () => Promise.reject(down()),
};

it('a part that fails is logged, and the others are called in each phase', async () => {
  const called: string[] = [];
  const logged: object[] = [];
  const note = (phase: string) => void called.push(phase);
  const sound: BrowserPart = {
    begin: (_, __, isAdopted) => note(`begin ${isAdopted}`),
    follow: () => note('follow'),
    end: () => ({ beforeReport: Promise.resolve({ blackBox }) }),
    leave: async () => note('leave'),
  };
  const log = { error: (fields: object) => void logged.push(fields) };
  const pool = { parts: [throwing, rejecting, sound], log };

  beginParts(pool, browser, session, true);
  followParts(pool, session);
  const ends = endParts(pool, browser);
  await ends.beforeStop;
  expect(await ends.beforeReport).toEqual({ blackBox });
  await leaveParts(pool);

  expect(called).toEqual(['begin true', 'follow', 'leave']);
  const phases = logged.map((fields) => (fields as { phase: string }).phase);
  expect(phases.toSorted()).toEqual(['begin', 'end', 'end', 'end', 'follow', 'leave', 'leave']);
});

it('the browser is stopped, and its end recorded, after what each part asks for', async () => {
  const stored = Promise.withResolvers<void>();
  const told: string[] = [];
  const slow: BrowserPart = { end: () => ({ beforeStop: stored.promise }) };
  const pool = { parts: [slow], log: { error: () => undefined } };
  const ends = endParts(pool, browser);
  const stopped = ends.beforeStop.then(() => told.push('stopped'));
  await ends.beforeReport;
  expect(told).toEqual([]);
  stored.resolve();
  await stopped;
  expect(told).toEqual(['stopped']);
});
