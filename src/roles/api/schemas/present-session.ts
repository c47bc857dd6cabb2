import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import type { SessionState } from '#events/session.ts';
import { formatDuration } from '#src/kernel/domain/session/duration.ts';
import { isAwaitingServer, isFinal } from '#src/kernel/domain/session/session.ts';
import type { Caller } from '../auth/authenticate.ts';
import { presentEgress } from './egress.ts';
import { presentEmulation } from './emulation.ts';
import { presentHandoff } from './steering.ts';

/**
 * Port: the addresses of a session's browser for clients. They are issued to a caller: `keyHash` is
 * that of its API key, null if it has none. The same caller always gets the same addresses, until
 * they are rotated.
 */
export type Addresses = {
  cdpUrl(session: SessionState, keyHash: string | null): string;
  bidiUrl(session: SessionState, keyHash: string | null): string;
  vncUrl(session: SessionState, keyHash: string | null, grant?: Grant): string;
  vncPassword(workloadId: string): string;
  /** A page that shows the browser's screen; takes the password in its fragment. */
  viewerUrl(
    session: SessionState,
    keyHash: string | null,
    vncPassword: string,
    grant?: Grant,
  ): string;
};

/** The share or the hand-off that an address ends with. */
type Grant = { kind: 'share' | 'handoff'; id: string };

type Connection = {
  vncUrl: string | null;
  cdpUrl: string | null;
  bidiUrl: string | null;
  vncPassword: string | null;
  viewerUrl: string | null;
};

const NO_CONNECTION = {
  vncUrl: null,
  cdpUrl: null,
  bidiUrl: null,
  vncPassword: null,
  viewerUrl: null,
};

/**
 * The addresses and secrets to control the browser. All are null for a viewer and once the session
 * is ending; those of VNC are null for a browser without a screen. The addresses are known from the
 * request on; the gateway refuses connections until the session is active.
 */
function connectionOf(session: SessionState, caller: Caller, addresses: Addresses): Connection {
  const isOver = session.status === 'stopping' || isFinal(session.status);
  if (isOver || caller.role === 'viewer') return NO_CONNECTION;
  const { workload, browser } = session;
  const { keyHash } = caller;
  const cdpUrl = addresses.cdpUrl(session, keyHash);
  const bidiUrl = addresses.bidiUrl(session, keyHash);
  if (browser.headless === true) return { ...NO_CONNECTION, cdpUrl, bidiUrl };
  const vncPassword = workload === null ? null : addresses.vncPassword(workload.workloadId);
  return {
    vncUrl: addresses.vncUrl(session, keyHash),
    cdpUrl,
    bidiUrl,
    vncPassword,
    viewerUrl: vncPassword && addresses.viewerUrl(session, keyHash, vncPassword),
  };
}

/** How to connect to the session: the body of the answers about its access. */
export function presentAccess(session: SessionState, caller: Caller, addresses: Addresses) {
  const connection = connectionOf(session, caller, addresses);
  const { vncUrl, cdpUrl, bidiUrl, vncPassword, viewerUrl } = connection;
  return {
    session_id: session.id,
    status: session.status,
    vnc_url: vncUrl,
    vnc_password: vncPassword,
    cdp_url: cdpUrl,
    bidi_url: bidiUrl,
    viewer_url: viewerUrl,
    access_urls: { vnc_url: vncUrl, cdp_url: cdpUrl },
    expires_at: session.expiresAt,
  };
}

/** The session's fields that the caller may see. */
export function presentSession(session: SessionState, caller: Caller, addresses: Addresses) {
  const connection = connectionOf(session, caller, addresses);
  const { vncUrl, cdpUrl, bidiUrl, vncPassword, viewerUrl } = connection;
  return {
    id: session.id,
    session_name: session.name,
    description: session.description,
    status: session.status,
    user_id: session.userId,
    organization_id: session.organizationId,
    organization_role: caller.role,
    created_at: session.createdAt,
    started_at: session.startedAt,
    last_accessed_at: session.lastAccessedAt,
    expires_at: session.expiresAt,
    ended_at: session.endedAt,
    ended_reason: session.endedReason,
    vnc_url: vncUrl,
    cdp_url: cdpUrl,
    bidi_url: bidiUrl,
    vnc_password: vncPassword,
    viewer_url: viewerUrl,
    access_urls: { vnc_url: vncUrl, cdp_url: cdpUrl },
    autoscaler_workload_id: session.workload?.workloadId ?? null,
    autoscaler_server_id: session.workload?.serverId ?? null,
    autoscaler_server_ip: session.workload?.serverIp ?? null,
    labels: session.labels,
    idle_timeout: session.idleTimeoutMs === null ? null : formatDuration(session.idleTimeoutMs),
    viewport: session.browser.viewport,
    locale: session.browser.locale,
    timezone: session.browser.timezone,
    headless: session.browser.headless ?? false,
    extensions: session.browser.extensions ?? [],
    egress: presentEgress(session),
    record: session.record ?? false,
    ...presentEmulation(session.browser),
    credits_reserved: session.creditsReserved,
    credits_used: session.creditsUsed,
    profile: session.profile === undefined ? null : presentOwnProfile(session.profile),
    handoff: session.handoff === undefined ? null : presentHandoff(session, session.handoff),
  };
}

function presentOwnProfile({ id, version, save, saved }: NonNullable<SessionState['profile']>) {
  return { id, version: version === 0 ? null : version, save, saved_version: saved ?? null };
}

/** Rendered sessions in the cache; a session that is read often is rendered once. */
const RENDERED_MAX = 5_000;

/** `body`: the answer's JSON text. `waiting`: the session, if it waits for a server. */
export type Rendered = { body: string; waiting: SessionState | null };

/** Session view (JSON text) → answer, rendering each view once per role and API key. */
export function createRenderer(addresses: Addresses) {
  const rendered = new BoundedMap<string, Rendered & { view: string }>(RENDERED_MAX);
  return function render(view: string, key: string, caller: Caller): Rendered {
    const cacheKey = `${key} ${caller.role} ${caller.keyHash ?? ''}`;
    const known = rendered.get(cacheKey);
    if (known?.view === view) return known;
    const session = JSON.parse(view) as SessionState;
    const body = JSON.stringify(presentSession(session, caller, addresses));
    const fresh = { view, body, waiting: isAwaitingServer(session) ? session : null };
    rendered.set(cacheKey, fresh);
    return fresh;
  };
}
