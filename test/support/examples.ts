import type { EgressRules, EgressTraffic } from '#events/egress.ts';
import type { ServerEvent } from '#events/server.ts';
import type { SessionEvent, SessionWorkload, StopReason } from '#events/session.ts';
import type { CreateSession } from '#src/kernel/domain/session/commands.ts';

/** Events and commands of an ordinary session, for given and when. Times are ms since the epoch. */
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** The time of the session's request. */
export const T0 = Date.parse('2026-03-01T12:00:00.000Z');

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

type DataOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>['data'];

const asked = {
  name: 'brisk-otter',
  description: 'checks the shop',
  userId: 'user_1',
  labels: { team: 'shop' },
  browser: { viewport: { width: 1280, height: 720 }, locale: 'en-US', timezone: null },
  idleTimeoutMs: null,
  fingerprint: null,
};

/** A request for two hours. */
export function createSession(other: Partial<CreateSession> = {}): CreateSession {
  return { type: 'CreateSession', ...asked, durationMs: 2 * HOUR, now: T0, ...other };
}

export function requested(other: Partial<DataOf<'session.requested'>> = {}): SessionEvent {
  const times = { createdAt: iso(T0), expiresAt: iso(T0 + 2 * HOUR) };
  return {
    type: 'session.requested',
    data: { ...asked, ...times, creditsReserved: 120, ...other },
  };
}

export const queued: SessionEvent = { type: 'session.queued', data: {} };

export function assigned(workloadId = 'wl_1', serverId = 'srv_1'): SessionEvent {
  return { type: 'session.assigned', data: { workloadId, serverId } };
}

export function browser(workloadId = 'wl_1'): SessionWorkload {
  return {
    workloadId,
    serverId: 'srv_1',
    serverIp: '10.0.0.7',
    cdp: { host: '127.0.0.1', port: 9222, path: '/devtools/browser/b-1' },
    vnc: { host: '127.0.0.1', port: 5901 },
  };
}

export const requeued: SessionEvent = {
  type: 'session.requeued',
  data: { serverId: 'srv_1', detail: 'no display' },
};

/** The end of a session that was requested for two hours. */
export const expiryWarning: SessionEvent = {
  type: 'session.expiry-warning',
  data: { expiresAt: iso(T0 + 2 * HOUR) },
};

export function activated(startedAtMs = T0, workload = browser()): SessionEvent {
  return { type: 'session.activated', data: { workload, startedAt: iso(startedAtMs) } };
}

export function extended(byMs: number, expiresAtMs: number): SessionEvent {
  const creditsReserved = Math.ceil(byMs / MINUTE);
  return { type: 'session.extended', data: { byMs, expiresAt: iso(expiresAtMs), creditsReserved } };
}

export function accessRotated(epoch: number, atMs = T0): SessionEvent {
  return { type: 'session.access-rotated', data: { epoch, at: iso(atMs) } };
}

/** A person helps and gives the browser back. */
export const handedOff = [
  {
    type: 'session.handoff-requested',
    data: {
      handoffId: 'hof_1',
      instructions: 'Please sign in to the shop.',
      by: 'user_1',
      at: iso(T0 + 6 * MINUTE),
      expiresAt: iso(T0 + 16 * MINUTE),
    },
  },
  {
    type: 'session.handoff-taken',
    data: { handoffId: 'hof_1', by: 'user_2', at: iso(T0 + 7 * MINUTE) },
  },
  {
    type: 'session.handoff-completed',
    data: {
      handoffId: 'hof_1',
      by: 'user_2',
      at: iso(T0 + 8 * MINUTE),
      success: true,
      note: 'Signed in.',
    },
  },
] as const satisfies SessionEvent[];
/** A screen is shown to somebody else. */
export const shared = [
  {
    type: 'session.share-created',
    data: {
      shareId: 'shr_1',
      mode: 'view',
      by: 'user_1',
      at: iso(T0 + 6 * MINUTE),
      expiresAt: iso(T0 + HOUR),
    },
  },
  { type: 'session.share-used', data: { shareId: 'shr_1', at: iso(T0 + 7 * MINUTE) } },
  {
    type: 'session.share-revoked',
    data: { shareId: 'shr_1', by: 'user_1', at: iso(T0 + 8 * MINUTE) },
  },
] as const satisfies SessionEvent[];

/** A session's rules, and what was counted of its browser. */
export const egress: EgressRules = {
  allow: ['*.example.com:443', '198.51.100.0/24'],
  deny: ['ads.example.com'],
  proxy: { server: 'http://proxy.example.com:3128', username: 'shop', sealedPassword: 'c2VhbGVk' },
};
export const egressTraffic: EgressTraffic = {
  hosts: [
    {
      ...{ host: 'www.example.com', connections: 3, bytesSent: 4_100, bytesReceived: 91_000 },
      refused: 0,
    },
    {
      ...{ host: 'ads.example.com', connections: 0, bytesSent: 0, bytesReceived: 0 },
      ...{ refused: 2, lastRefusal: 'denied' },
    },
  ],
  others: { connections: 0, bytesSent: 0, bytesReceived: 0, refused: 0 },
};
export const egressRecorded: SessionEvent = {
  type: 'session.egress-recorded',
  data: { at: iso(T0 + MINUTE), ...egressTraffic },
};
/** A minute of a recording: two segments, and what an earlier process could not record. */
export const recordingStored = {
  type: 'session.recording-stored',
  data: {
    segments: [
      {
        number: 1,
        startedAt: iso(T0 + 3 * SECOND),
        endedAt: iso(T0 + 8 * SECOND),
        full: true,
        bytes: 61_200,
        sha256: '01'.repeat(32),
      },
      {
        number: 2,
        startedAt: iso(T0 + 20 * SECOND),
        endedAt: iso(T0 + 21 * SECOND),
        full: false,
        bytes: 800,
        sha256: '23'.repeat(32),
      },
    ],
    gaps: [{ from: iso(T0 + 8 * SECOND), until: iso(T0 + 20 * SECOND), reason: 'restart' }],
    chain: '45'.repeat(32),
    until: iso(T0 + MINUTE),
  },
} as const satisfies SessionEvent;
/** A download, its removal, and one that was too large. */
export const filed = [
  {
    type: 'session.file-added',
    data: {
      fileId: 'fil_1',
      name: 'report.pdf',
      bytes: 48_213,
      sha256: 'ab'.repeat(32),
      origin: 'download',
      at: iso(T0 + 6 * MINUTE),
    },
  },
  { type: 'session.file-removed', data: { name: 'report.pdf', at: iso(T0 + 7 * MINUTE) } },
  {
    type: 'session.file-refused',
    data: {
      name: 'film.mkv',
      origin: 'download',
      reason: 'too_large',
      bytes: 4 * 1024 ** 3,
      at: iso(T0 + 8 * MINUTE),
    },
  },
] as const satisfies SessionEvent[];

/** A session that is asked to save its profile. */
export const profile = { id: 'prf_1', version: 3, save: true } as const;

/** Outcomes of a session's profile: while it goes on, and at its end. */
export const profiled = [
  {
    type: 'session.profile-saved',
    data: { profileId: 'prf_1', version: 4, bytes: 4_718_592, atEnd: false },
  },
  {
    type: 'session.profile-not-saved',
    data: { profileId: 'prf_1', reason: 'not_closed', detail: 'it hung', atEnd: true },
  },
  {
    type: 'session.profile-save-requested',
    data: { profileId: 'prf_1', at: iso(T0) },
  },
] as const satisfies SessionEvent[];

/** The state is carried again: the event before it is archived. */
export const carriedForward: SessionEvent = {
  type: 'session.carried-forward',
  data: { archivedUpTo: 1200 },
};

export function accessed(atMs: number, via: 'api' | 'cdp' | 'vnc' = 'api'): SessionEvent {
  return { type: 'session.accessed', data: { via, at: iso(atMs) } };
}

export function stopRequested(reason: StopReason = 'user', atMs: number = T0): SessionEvent {
  return { type: 'session.stop-requested', data: { reason, at: iso(atMs) } };
}

/** A stop a while after the request, when that many of 120 reserved minutes were used. */
export function stopped(atMs: number, creditsUsed = 0, reason: StopReason = 'user'): SessionEvent {
  const creditsRefunded = 120 - creditsUsed;
  return {
    type: 'session.stopped',
    data: { reason, endedAt: iso(atMs), creditsUsed, creditsRefunded },
  };
}

export function failed(other: Partial<DataOf<'session.failed'>> = {}): SessionEvent {
  const ended = { endedAt: iso(T0), creditsUsed: 0, creditsRefunded: 120 };
  return {
    type: 'session.failed',
    data: { reason: 'launch_failed', detail: 'no display', exitCode: 1, ...ended, ...other },
  };
}

/** A decision of a server about its pool. */
export const resized: Extract<ServerEvent, { type: 'server.pool-resized' }>['data'] = {
  policy: 1,
  inputs: {
    ...{ isDraining: false, idle: 1, launching: 0, busy: 2, ending: 0, waiting: 0 },
    ...{ arrivals10s: 12, arrivals60s: 20, launchMs: 500 },
    ...{ minIdle: 1, maxIdle: 8, max: 8, launchesAtOnce: 2 },
    ...{ memoryFreeBytes: 8e9, browserBytes: 268_435_456, cpuPressure: 0.125 },
    ...{ target: 1, limitedBy: null, calmMs: 0, calmPeak: 0, surplusMs: 0 },
  },
  decision: { need: 3, target: 3, limitedBy: null, room: 5, launch: 2, retire: 0 },
};
