import type { ErrorName } from '#src/errors.ts';

const ID = 'ses_J5mYt3QKX2m0bq1uHcR8Vw';
const HANDOFF = 'hof_2tYc0NgR8VwXb4n9T6kLw0';
const FILE = 'report.pdf';
const EXTENSION = 'ext_9c56cc51b374c3ba189210d5b6d4bf57';
const PROFILE = 'prf_8v1KpR7tYc0NgXb4n9T6kL';
const WEBHOOK = 'whk_2tYc0NgR8VwXb4n9T6kLw0';
const PAGE = 'https://example.com/';
const SHARE = 'shr_9T6kLw0yPq2mVz8sHgJ5mY';

/** An example context of each error, for the documentation. */
export const errorContexts: Record<ErrorName, Record<string, unknown>> = {
  INVALID_REQUEST: { field: 'viewport.width' },
  INVALID_EXTENSION: {},
  UNKNOWN_EXTENSION: { extension_ids: [EXTENSION] },
  INVALID_DURATION: { duration: '25h' },
  INVALID_FILE_NAME: { name: '../../x', suggestion: 'x' },
  FILE_INCOMPLETE: { name: FILE, bytes_received: 1_048_576 },
  UNAUTHORIZED: {},
  INSUFFICIENT_CREDITS: { required: 120, available: 35 },
  FORBIDDEN: { role: 'viewer', action: 'control' },
  NOT_FOUND: { path: '/api/session' },
  SESSION_NOT_FOUND: { session_id: ID },
  HANDOFF_NOT_FOUND: { session_id: ID, handoff_id: HANDOFF },
  SHARE_NOT_FOUND: { session_id: ID, share_id: SHARE },
  RECORDING_NOT_FOUND: { session_id: ID },
  THUMBNAIL_NOT_FOUND: { session_id: ID },
  FILE_NOT_FOUND: { session_id: ID, name: FILE },
  EXTENSION_NOT_FOUND: { extension_id: EXTENSION },
  PROFILE_NOT_FOUND: { profile_id: PROFILE },
  PROFILE_VERSION_NOT_FOUND: { profile_id: PROFILE, version: 3, versions: [7, 8, 9] },
  WEBHOOK_NOT_FOUND: { webhook_id: WEBHOOK },
  DELIVERY_NOT_FOUND: { webhook_id: WEBHOOK, delivery_id: 'evt_c0Zq4nRk1mT8yXwU5sLd2B' },
  KEY_NOT_FOUND: { key_id: 'key_5uLw2ZfQx8v1KpR7tYc0Ng' },
  METHOD_NOT_ALLOWED: { method: 'PUT', allow: ['GET', 'HEAD', 'DELETE'] },
  IDEMPOTENCY_CONFLICT: { session_id: ID, ended_at: '2026-01-01T02:00:00.000Z' },
  SESSION_NOT_READY: { session_id: ID, status: 'queued' },
  SESSION_NOT_ACTIVE: { session_id: ID, status: 'active', expires_at: '2026-01-01T02:00:00.000Z' },
  HANDOFF_CONFLICT: { session_id: ID, handoff_id: HANDOFF, status: 'taken', taken_by: 'user_2' },
  PROFILE_READ_ONLY: { session_id: ID },
  PROFILE_SAVE_UNDER_WAY: { session_id: ID },
  PROFILE_NOT_SAVED: {
    session_id: ID,
    profile_id: PROFILE,
    reason: 'storage',
    detail: 'it could not be read or stored',
  },
  PROFILE_IN_USE: { profile_id: PROFILE, session_id: ID },
  SESSION_ENDED: { session_id: ID, status: 'stopped', ended_reason: 'expired' },
  SHARE_ENDED: {},
  PAYLOAD_TOO_LARGE: {},
  FILE_TOO_LARGE: { session_id: ID, name: FILE, max_bytes: 1_073_741_824 },
  FILES_QUOTA_EXCEEDED: { session_id: ID, name: FILE, max_bytes: 4_294_967_296 },
  RESULT_TOO_LARGE: { session_id: ID, max_bytes: 16_777_216 },
  UNSUPPORTED_MEDIA_TYPE: {},
  RANGE_NOT_SATISFIABLE: { name: FILE, bytes: 48_213 },
  NAVIGATION_FAILED: { session_id: ID, url: PAGE, reason: 'net::ERR_NAME_NOT_RESOLVED' },
  RATE_LIMIT_EXCEEDED: { limit: 100, cost: 1 },
  SESSION_LIMIT_EXCEEDED: { limit: 5, session_ids: [ID] },
  SHARE_LIMIT_EXCEEDED: { session_id: ID, limit: 16 },
  DEBUGGER_PORT_LIMIT_EXCEEDED: { of: 'organization', limit: 50 },
  EXTENSION_LIMIT_EXCEEDED: { limit: 50 },
  WEBHOOK_LIMIT_EXCEEDED: { limit: 20 },
  PROFILE_LIMIT_EXCEEDED: { limit: 100 },
  STREAM_LIMIT_EXCEEDED: { limit: 250 },
  MCP_SESSION_LIMIT_EXCEEDED: { limit: 200 },
  TRANSFER_LIMIT_EXCEEDED: { limit: 34 },
  ONE_CALL_LIMIT_EXCEEDED: { limit: 16 },
  INTERNAL: {},
  DEBUGGER_PORTS_OFF: { session_id: ID },
  BROWSER_UNREACHABLE: {},
  PAGE_CRASHED: { session_id: ID, url: PAGE },
  NO_SERVERS_AVAILABLE: {
    servers: [{ server_id: 'srv_Xb4n9T6kLw0yPq2mVz8sHg', pool_max: 4, reason: 'full' }],
    waiting: 100,
    queue_max: 100,
    organization_waiting: 50,
    queue_max_per_organization: 50,
  },
  EGRESS_UNAVAILABLE: { servers: ['srv_Xb4n9T6kLw0yPq2mVz8sHg'] },
  UNAVAILABLE: { part: 'read-model' },
  PAGE_TIMEOUT: { session_id: ID, url: PAGE, timeout_ms: 30_000, waited_for: 'page' },
};
