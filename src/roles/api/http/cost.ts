import type { IncomingHttpHeaders } from 'node:http';
import { codingOf } from './body-coding.ts';

/** What is known of a request before its work begins; the query is not validated yet. */
export type Asked = {
  query: Readonly<Record<string, unknown>>;
  headers: IncomingHttpHeaders;
};

/**
 * How many units of the caller's rate limit a request takes. `meaning` is for the documentation.
 */
export type Cost = { units: (asked: Asked) => number; meaning: string };

/**
 * The greatest cost of a request: a fifth of the smallest tier's limit, so that every request fits
 * into every tier's window.
 */
export const COST_MAX = 20;

/** Bytes of a create's body for one unit: all events of the session carry them, and its view. */
const BYTES_OF_A_UNIT = 256;
const CREATE_MAX = 10;
/** Lines of usage for one unit: so many histories are read in about 3 ms. */
const LINES_OF_A_UNIT = 10;
const LINES_DEFAULT = 20;
const LINES_MAX = 100;

/** A stream of events from the first one on, or from a time. */
const FIRST_EVENT = 10;
/** From another position: reconnects must be cheap. */
const LATER_EVENT = 2;

/** Screenshots that are no wider are thumbnails. */
const THUMBNAIL_MAX = 640;

/** Events of a page for one unit: so many are read and written in about 3 ms. */
const EVENTS_OF_A_UNIT = 50;
const EVENTS_DEFAULT = 100;
const EVENTS_MAX = 500;
/** For a label up to 1,000 events are read. */
const LABELLED_PAGE = 12;

const isNamed = (value: unknown) => value !== undefined && value !== '';

/**
 * Units for the bytes of a body whose texts all later events of the session carry. In a content
 * coding it has more than its length says.
 */
function unitsOfBody({ headers }: Asked): number {
  if (headers['transfer-encoding'] !== undefined || codingOf({ headers }) !== null)
    return CREATE_MAX;
  const bytes = Number(headers['content-length'] ?? 0);
  return Math.min(CREATE_MAX, Math.max(1, Math.ceil(bytes / BYTES_OF_A_UNIT)));
}
const BY_BODY =
  'Costs 1 unit of the rate limit for each 256 bytes of the body that are begun, at most 10; ' +
  '10 if the length is not sent, or the body is in a content coding.';

/** Units for the backlog of a stream of events; null: the request names no position. */
function unitsOfBacklog({ query, headers }: Asked): number | null {
  const lastId = headers['last-event-id'];
  if (isNamed(lastId)) return Number(lastId) === 0 ? FIRST_EVENT : LATER_EVENT;
  if (!isNamed(query['from'])) return null;
  return Number(query['from']) > 1 ? LATER_EVENT : FIRST_EVENT;
}

/** Units for a page of events. */
function unitsOfPage({ query }: Asked): number {
  const asked = Number(query['limit'] ?? EVENTS_DEFAULT);
  const events = asked >= 1 && asked <= EVENTS_MAX ? asked : 0;
  return 1 + Math.ceil(events / EVENTS_OF_A_UNIT);
}

/** Whether events are asked for as pages of JSON, and not as a stream. */
export function wantsPages({ query, headers }: Asked): boolean {
  if (isNamed(query['format'])) return query['format'] === 'json';
  const accept = headers.accept ?? '';
  return accept.includes('application/json') && !accept.includes('text/event-stream');
}

/**
 * The costs that differ from one unit. src/roles/api/http/README.md has the same table, and a
 * test holds them equal.
 */
export const costs = {
  createSession: { units: unitsOfBody, meaning: BY_BODY },
  oneCall: { units: unitsOfBody, meaning: BY_BODY },
  updateSession: { units: unitsOfBody, meaning: BY_BODY },
  stopSessions: {
    units: () => 20,
    meaning: 'Costs 20 units of the rate limit.',
  },
  listSessions: {
    units: ({ query }) => {
      if (isNamed(query['as_of'])) return 20;
      const labels = Array.isArray(query['label']) ? query['label'].length : 0;
      const isBeside = labels > 0 || isNamed(query['label']) || isNamed(query['status']);
      return labels > 1 || (isNamed(query['user_id']) && isBeside) ? 10 : 1;
    },
    meaning:
      'Costs 10 units of the rate limit with several labels, or with a user and a label or ' +
      'status, 20 with `as_of`, else 1.',
  },
  getSession: {
    units: ({ query }) => (isNamed(query['as_of']) ? 10 : 1),
    meaning: 'Costs 10 units of the rate limit with `as_of`, else 1.',
  },
  getStatus: {
    units: ({ query }) => (isNamed(query['as_of']) ? 20 : 1),
    meaning: 'Costs 20 units of the rate limit with `as_of`, else 1.',
  },
  getUsage: {
    units: ({ query }) => {
      const asked = Number(query['limit'] ?? LINES_DEFAULT);
      const lines = asked >= 1 && asked <= LINES_MAX ? asked : 0;
      return 1 + Math.ceil(lines / LINES_OF_A_UNIT);
    },
    meaning: 'Costs 1 unit of the rate limit, and 1 for each 10 lines of `limit` that are begun.',
  },
  streamEvents: {
    units(asked) {
      if (!wantsPages(asked)) return unitsOfBacklog(asked) ?? 1;
      return isNamed(asked.query['label']) ? LABELLED_PAGE : unitsOfPage(asked);
    },
    meaning:
      'Costs 10 units of the rate limit from the first event or from a time, 2 from another ' +
      'position, 1 from now on; a page 1 unit, and 1 for each 50 events of `limit` that are ' +
      'begun, 12 with a label.',
  },
  getSessionHistory: {
    units: unitsOfPage,
    meaning: 'Costs 1 unit of the rate limit, and 1 for each 50 events of `limit` that are begun.',
  },
  getSessionWhy: {
    units: () => 10,
    meaning: 'Costs 10 units of the rate limit.',
  },
  exportAudit: {
    units: () => COST_MAX,
    meaning: 'Costs 20 units of the rate limit.',
  },
  streamSessionEvents: {
    units: (asked) => unitsOfBacklog(asked) ?? FIRST_EVENT,
    meaning:
      'Costs 10 units of the rate limit from the first event, where it begins without a ' +
      'position, or from a time, 2 from another position.',
  },
  getPool: {
    units: () => 10,
    meaning: 'Costs 10 units of the rate limit.',
  },
  getQueue: {
    units: () => 5,
    meaning: 'Costs 5 units of the rate limit.',
  },
  listHandoffs: {
    units: () => 10,
    meaning: 'Costs 10 units of the rate limit.',
  },
  getScreenshot: {
    units: ({ query }) => (Number(query['max_width'] ?? Infinity) > THUMBNAIL_MAX ? 2 : 1),
    meaning: 'Costs 1 unit of the rate limit with a `max_width` of at most 640, else 2.',
  },
  getThumbnail: { units: () => 2, meaning: 'Costs 2 units of the rate limit.' },
  saveProfile: { units: () => 10, meaning: 'Costs 10 units of the rate limit.' },
  getRecording: {
    units: () => 5,
    meaning: 'Costs 5 units of the rate limit.',
  },
  listFiles: { units: () => 2, meaning: 'Costs 2 units of the rate limit.' },
  readFile: { units: () => 2, meaning: 'Costs 2 units of the rate limit, whatever its length.' },
  writeFile: { units: () => 5, meaning: 'Costs 5 units of the rate limit, whatever its length.' },
  zipFiles: { units: () => 10, meaning: 'Costs 10 units of the rate limit.' },
  uploadExtension: {
    units: () => COST_MAX,
    meaning: 'Costs 20 units of the rate limit.',
  },
  listDeliveries: { units: () => 5, meaning: 'Costs 5 units of the rate limit.' },
  changeKey: {
    units: () => 10,
    meaning: 'Costs 10 units of the rate limit.',
  },
  mcpMessage: {
    units: ({ headers }) => (isNamed(headers['mcp-session-id']) ? 1 : 10),
    meaning: 'Costs 10 units of the rate limit without `Mcp-Session-Id`, else 1.',
  },
} as const satisfies Record<string, Cost>;

/** The units that a request takes of a window of `limit`: never more than fit into it. */
export function unitsOf(cost: Cost | undefined, asked: Asked, limit: number): number {
  return Math.min(cost?.units(asked) ?? 1, COST_MAX, Math.max(1, limit));
}
