import { ARCHIVE } from '#events/archive/archive.ts';
import type { PendingEvent } from '#events/codec.ts';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import {
  accessed,
  activated,
  assigned,
  egressRecorded,
  expiryWarning,
  failed,
  filed,
  handedOff,
  HOUR,
  iso,
  MINUTE,
  queued,
  recordingStored,
  requested,
  requeued,
  resized,
  profile,
  profiled,
  SECOND,
  shared,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const organizationId = 'org_acme';
const session = { kind: 'session', organizationId, id: 'ses_1' } as const;
const server = { kind: 'server', id: 'srv_1' } as const;
const newerBrowser = { version: '151.0.7900.12', builtAt: '2026-11-20T03:00:00.000Z' };
const place = { ip: '10.0.0.7', browsers: 'kubernetes', poolMax: 4 } as const;
const ended = { reason: 'session_ended' } as const;
const reconciled = {
  ...{ adopted: 2, stopped: 1, failed: 0, corrected: 1 },
  leaks: { browsers: 0, sessions: 0 },
};
const carried = { archivedUpTo: 1200 };
/** What `egressRecorded` has. */
const egress = { bytesSent: 4_100, bytesReceived: 91_000, refused: 2 };
const charge = { sessionId: 'ses_1', credits: 60 };

/** Histories of one aggregate each, in which every type of event occurs. */
const lives: PendingEvent[][] = [
  live<'session'>(session, [
    requested({ labels: { team: 'shop', 'run/1': 'ü' }, fingerprint: 'ab'.repeat(32) }),
    queued,
    assigned(),
    requeued,
    activated(T0 + 2 * SECOND),
    expiryWarning,
    accessed(T0 + 3 * SECOND, 'cdp'),
    {
      type: 'session.extended',
      data: { byMs: HOUR, expiresAt: iso(T0 + 3 * HOUR), creditsReserved: 60 },
    },
    { type: 'session.access-rotated', data: { epoch: 1, at: iso(T0 + 5 * MINUTE) } },
    { type: 'session.updated', data: { name: 'Checkout', labels: { team: 'shop' } } },
    ...handedOff,
    ...shared,
    egressRecorded,
    recordingStored,
    ...filed,
    { type: 'session.carried-forward', data: carried },
    stopRequested(),
    {
      type: 'session.stopped',
      data: {
        reason: 'user',
        endedAt: iso(T0 + 10 * MINUTE),
        creditsUsed: 10,
        creditsRefunded: 170,
        egress,
      },
    },
  ]),
  live<'session'>({ ...session, id: 'ses_2' }, [requested(), failed()]),
  live<'session'>({ ...session, id: 'ses_3' }, [
    requested(),
    activated(T0 + 2 * SECOND),
    handedOff[0],
    { type: 'session.handoff-expired', data: { handoffId: 'hof_1', at: iso(T0 + HOUR) } },
  ]),
  live<'session'>({ ...session, id: 'ses_4' }, [
    requested({ profile }),
    activated(T0 + 2 * SECOND),
    profiled[2],
    profiled[0],
    stopRequested(),
    profiled[1],
  ]),
  live<'ledger'>({ kind: 'ledger', organizationId }, [
    { type: 'ledger.credits-granted', data: { credits: 600 } },
    { type: 'ledger.slot-reserved', data: { ...charge, credits: 120 } },
    { type: 'ledger.credits-reserved', data: charge },
    { type: 'ledger.carried-forward', data: carried },
    {
      type: 'ledger.slot-released',
      data: { sessionId: 'ses_1', creditsUsed: 10, creditsRefunded: 170, egress },
    },
  ]),
  live<'organization'>({ kind: 'organization', organizationId }, [
    { type: 'organization.registered', data: { name: 'Acme', tier: 'free' } },
    {
      type: 'organization.key-issued',
      data: { keyId: 'key_1', hash: 'ab'.repeat(32), role: 'member', userId: 'user_1' },
    },
    { type: 'organization.tier-changed', data: { tier: 'pro' } },
    { type: 'organization.key-revoked', data: { keyId: 'key_1' } },
    { type: 'organization.origins-allowed', data: { origins: ['https://app.example.com'] } },
    { type: 'organization.profile-added', data: { profileId: 'prf_1', before: 4 } },
    { type: 'organization.profile-removed', data: { profileId: 'prf_1' } },
    {
      type: 'organization.extension-uploaded',
      data: {
        ...{ extensionId: `ext_${'ab'.repeat(16)}`, name: 'Marker', version: '1.2', bytes: 480 },
        ...{ sha256: 'ab'.repeat(32), uploadedAt: iso(T0), by: 'user_1' },
      },
    },
    {
      type: 'organization.webhook-added',
      data: {
        ...{ webhookId: 'whk_1', endpoint: 'https://a:b@hooks.example.com/bss?key=1' },
        ...{ address: 'https://hooks.example.com', types: ['session.stopped'] },
        ...{ labels: { team: 'shop' }, createdAt: iso(T0), by: 'user_1' },
      },
    },
    {
      type: 'organization.webhook-changed',
      data: { webhookId: 'whk_1', types: [], labels: {}, by: 'user_1' },
    },
    {
      type: 'organization.webhook-secret-rotated',
      data: { webhookId: 'whk_1', generation: 2, at: iso(T0), by: 'user_1' },
    },
    {
      type: 'organization.webhook-replay-requested',
      data: { webhookId: 'whk_1', from: 12, by: 'user_1' },
    },
    {
      type: 'organization.webhook-disabled',
      data: {
        ...{ webhookId: 'whk_1', address: 'https://hooks.example.com', reason: 'failing' },
        ...{ detail: 'answered 500', at: iso(T0) },
      },
    },
    { type: 'organization.webhook-enabled', data: { webhookId: 'whk_1', by: 'user_1' } },
    { type: 'organization.webhook-removed', data: { webhookId: 'whk_1', by: 'user_1' } },
    {
      type: 'organization.extension-removed',
      data: { extensionId: `ext_${'ab'.repeat(16)}`, by: 'user_1' },
    },
    {
      type: 'organization.sessions-stop-requested',
      data: {
        filter: { status: 'active', labels: { team: 'shop' }, createdBefore: iso(T0) },
        sessions: 12,
        note: 'the shop is closed',
        by: 'user_1',
      },
    },
    { type: 'organization.carried-forward', data: carried },
  ]),
  live<'profile'>({ kind: 'profile', organizationId, id: 'prf_1' }, [
    { type: 'profile.created', data: { name: 'shop log-in', by: 'user_1', at: iso(T0) } },
    { type: 'profile.writer-admitted', data: { sessionId: 'ses_4', at: iso(T0) } },
    {
      type: 'profile.version-saved',
      data: {
        version: 1,
        sessionId: 'ses_4',
        savedAt: iso(T0 + MINUTE),
        sha256: 'ab'.repeat(32),
        bytes: 4_718_592,
        browser: '150.0.7871.100',
        contents: {
          origins: ['https://shop.example.com'],
          cookies: [{ domain: '.shop.example.com', name: 'session' }],
          isCut: true,
        },
        kept: 10,
      },
    },
    { type: 'profile.carried-forward', data: carried },
    { type: 'profile.removed', data: { by: 'user_1', at: iso(T0 + HOUR) } },
  ]),
  live<'server'>(server, [
    { type: 'server.joined', data: place },
    { type: 'server.browser-updated', data: newerBrowser },
    { type: 'server.pool-resized', data: resized },
    { type: 'server.reconciled', data: reconciled },
    { type: 'server.draining', data: {} },
    { type: 'server.drained', data: {} },
    { type: 'server.undrained', data: {} },
    { type: 'server.carried-forward', data: carried },
    { type: 'server.restarting', data: {} },
    { type: 'server.left', data: {} },
    { type: 'server.joined', data: place },
    { type: 'server.lost', data: {} },
  ]),
  live<'workload'>({ kind: 'workload', id: 'wl_1' }, [
    { type: 'workload.provisioning', data: { serverId: 'srv_1' } },
    { type: 'workload.launching', data: {} },
    { type: 'workload.idle', data: { launchMs: 412 } },
    { type: 'workload.assigned', data: { organizationId, sessionId: 'ses_1' } },
    { type: 'workload.carried-forward', data: carried },
    { type: 'workload.terminating', data: ended },
    { type: 'workload.terminated', data: { ...ended, exitCode: 0 } },
  ]),
  live<'archive'>(ARCHIVE, [
    {
      type: 'archive.sealed',
      data: { segment: 3, lastSequence: 1_480_012, manifestSha256: 'ab'.repeat(32), signer: 'k1' },
    },
    { type: 'archive.carried-forward', data: carried },
  ]),
];

/** One event of each type, with the state after it: the source of a new golden message. */
export const exampleEvents: ReadonlyMap<string, PendingEvent> = new Map(
  lives
    .flat()
    .toReversed()
    .map((event) => [event.type, event]),
);

function live<Kind extends AggregateKind>(
  aggregate: RefOf<Kind>,
  events: readonly Aggregates[Kind]['event'][],
): PendingEvent[] {
  let state: Aggregates[Kind]['state'] | null = null;
  return events.map((event, index) => {
    state = evolve<Kind>(aggregate, state, event);
    return toUnsequenced(aggregate, event, state, index);
  });
}

function toUnsequenced(
  aggregate: AggregateRef,
  { type, data }: { type: string; data: unknown },
  state: unknown,
  index: number,
): PendingEvent {
  const actor =
    index === 0 ? { kind: 'user', id: 'a:b@c' } : { kind: 'service', id: 'provisioner' };
  return {
    aggregate,
    id: `evt_${type.replace('.', '_')}`,
    type,
    time: iso(T0 + index * SECOND),
    data,
    state,
    metadata: {
      actor: actor as PendingEvent['metadata']['actor'],
      commandId: `cmd_${index}`,
      correlationId: 'cor_1',
      causationId: index === 0 ? null : 'evt_before',
      ...(index === 1 ? { traceparent: `00-${'1a'.repeat(16)}-${'2b'.repeat(8)}-01` } : {}),
    },
  };
}
