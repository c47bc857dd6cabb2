import { Type, type TSchema } from 'typebox';
import { statuses } from '#events/session.ts';
import { ScreenshotQuery } from '#src/roles/api/routes/sessions/session-screenshot.get.ts';
import { CreateSessionBody, ExtendSessionBody } from '#src/roles/api/schemas/requests.ts';
import { HistoryQuery } from '#src/roles/api/schemas/history.ts';
import { RequestHandoffBody } from '#src/roles/api/schemas/steering.ts';

/** What a tool's call asks of the API: each is one operation of it. */
export type ApiCall = {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Record<string, unknown>;
  body?: Record<string, unknown>;
};

/** The arguments of a call; the operation's own schema checks them. */
export type Arguments = Readonly<Record<string, unknown>>;

export type Tool = {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of the arguments, for the client. */
  inputSchema: { type: 'object' } & Record<string, unknown>;
  isReadOnly: boolean;
  /** Null: the arguments name no session, which the operation's path needs. */
  call: (given: Arguments) => ApiCall | null;
};

const KEEP = Type.Optional(
  Type.Boolean({
    description:
      'true: the session goes on when this MCP session ends; left out: it ends with it, also if ' +
      'the connection is lost',
  }),
);
const SESSION = { session_id: Type.String({ description: 'the session’s id, as `ses_…`' }) };

/** In the order in which clients list them. */
export const tools: readonly Tool[] = [
  {
    name: 'create_session',
    title: 'Create a browser session',
    description:
      'Starts a browser of its own and waits until it is there. The answer names the ' +
      '--cdp-endpoint by which Playwright MCP steers it. It ends with this MCP session unless ' +
      '`keep` is true, and after `duration` at the latest.',
    inputSchema: asked({ ...CreateSessionBody.properties, keep: KEEP }),
    isReadOnly: false,
    call(given) {
      const { keep: _, ...body } = given;
      return { method: 'POST', path: '/api/sessions', body };
    },
  },
  {
    name: 'list_sessions',
    title: 'List browser sessions',
    description: 'The organization’s sessions, newest first, a page at a time.',
    inputSchema: asked({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'page size' })),
      offset: Type.Optional(Type.Integer({ minimum: 0, description: 'sessions to skip' })),
      status: Type.Optional(
        Type.Union(
          statuses.map((status) => Type.Literal(status)),
          { description: 'only sessions with this status' },
        ),
      ),
      label: Type.Optional(
        Type.Array(Type.String(), { description: 'each `key=value`; all must match' }),
      ),
      user_id: Type.Optional(Type.String({ description: 'only sessions of this user' })),
    }),
    isReadOnly: true,
    call: (query) => ({ method: 'GET', path: '/api/sessions', query }),
  },
  {
    name: 'get_session',
    title: 'Look at a browser session',
    description: 'Its status, when it expires, and the --cdp-endpoint of its browser.',
    inputSchema: asked(SESSION),
    isReadOnly: true,
    call: ofSession('GET', '', 'query'),
  },
  {
    name: 'extend_session',
    title: 'Extend a browser session',
    description: 'Moves its expiry, and reserves the credits for that.',
    inputSchema: asked({ ...SESSION, ...ExtendSessionBody.properties }),
    isReadOnly: false,
    call: ofSession('POST', '/extend', 'body'),
  },
  {
    name: 'stop_session',
    title: 'Stop a browser session',
    description: 'Ends its browser, and gives unused credits back.',
    inputSchema: asked(SESSION),
    isReadOnly: false,
    call: ofSession('DELETE', '', 'query'),
  },
  {
    name: 'screenshot',
    title: 'Look at the page in front',
    description: 'A JPEG of what the session’s browser shows now.',
    inputSchema: asked({ ...SESSION, ...ScreenshotQuery.properties }),
    isReadOnly: true,
    call: ofSession('GET', '/screenshot', 'query'),
  },
  {
    name: 'request_handoff',
    title: 'Ask a person for help',
    description:
      'Asks a person to take the browser over, for a login or a puzzle. Look at the session’s ' +
      'history until `session.handoff-completed` or `session.handoff-expired` is there.',
    inputSchema: asked({ ...SESSION, ...RequestHandoffBody.properties }),
    isReadOnly: false,
    call: ofSession('POST', '/handoffs', 'body'),
  },
  {
    name: 'session_history',
    title: 'Read a session’s history',
    description: 'Each event of the session, with its actor, its cause and what it changed.',
    inputSchema: asked({ ...SESSION, ...HistoryQuery.properties }),
    isReadOnly: true,
    call: ofSession('GET', '/history', 'query'),
  },
  {
    name: 'why_ended',
    title: 'Why a session ended',
    description: 'The chain of causes of its end, or of its present state, in sentences.',
    inputSchema: asked(SESSION),
    isReadOnly: true,
    call: ofSession('GET', '/why', 'query'),
  },
  {
    name: 'usage',
    title: 'Usage and cost',
    description: 'What the organization’s sessions used, in minutes, a line for each session.',
    inputSchema: asked({
      from: Type.Optional(Type.String({ description: 'RFC 3339 time or date, with `to`' })),
      to: Type.Optional(Type.String({ description: 'RFC 3339 time or date' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'lines' })),
      after: Type.Optional(Type.String({ description: '`pagination.next` of the page before' })),
    }),
    isReadOnly: true,
    call: (query) => ({ method: 'GET', path: '/api/usage', query }),
  },
];

/** As clients get it: functions and what only the validator reads are left out. */
function asked(properties: Record<string, TSchema>): Tool['inputSchema'] {
  const schema = Type.Object(properties, { additionalProperties: false });
  return JSON.parse(JSON.stringify(schema)) as Tool['inputSchema'];
}

/** A call for the session that `session_id` names; the other arguments go into `place`. */
function ofSession(method: ApiCall['method'], path: string, place: 'query' | 'body') {
  return ({ session_id: id, ...rest }: Arguments): ApiCall | null => {
    if (typeof id !== 'string' || id === '') return null;
    return { method, path: `/api/sessions/${encodeURIComponent(id)}${path}`, [place]: rest };
  };
}
