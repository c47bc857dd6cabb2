/**
 * A session of the Model Context Protocol as its processes share it. The browser sessions that were
 * made in it end with it.
 */
export type McpSession = {
  organizationId: string;
  userId: string;
  /**
   * SHA-256 of the API key by which it was begun, in hex; null: it was a JWT. Left out in what was
   * stored before this field was there: every credential of the user has the session.
   */
  keyHash?: string | null;
  /** How the client names itself, as `agent 1.0`. */
  client: string;
  /** Its stream of messages to the client: never opened, open, or open before. */
  stream: 'none' | 'open' | 'cut';
  /** The newest stream, by which its process finds out that another one has replaced it. */
  streamId: string | null;
  /**
   * An API process closed its stream as it ended, and its client was not heard of since. Left out:
   * no.
   */
  isAwaited?: boolean;
  /** How its browser sessions end, with a note for people; null: it goes on. */
  ended: { reason: 'user' | 'organization'; note: string | null } | null;
};

/** A session as the store has it. */
export type StoredMcpSession = McpSession & {
  id: string;
  /** Grows with each write. */
  revision: number;
  /** Time since the last write, in ms, by the store's own clock; no process's clock counts. */
  ageMs: number;
};

/**
 * Port: the MCP sessions of all processes. Adapters: jetstream/jetstream-mcp-sessions.ts,
 * mcp-sessions.memory.ts. A write is a sign of life. Each call throws Unavailable('event-log') if
 * the store does not answer within 2 s.
 */
export type McpSessions = {
  /** @throws RangeError if there is one of this id */
  create(id: string, session: McpSession): Promise<void>;
  /** Null: there is none. */
  get(id: string): Promise<McpSession | null>;
  /**
   * Writes what `next` makes of the session, which may be the same; `next` runs again if somebody
   * else has written meanwhile, at most 10 times.
   * @param next null: the session stays as it is
   * @returns what is stored now; null: there is none, or `next` returned null
   */
  change(
    id: string,
    next: (session: McpSession, revision: number) => McpSession | null,
  ): Promise<McpSession | null>;
  remove(id: string): Promise<void>;
  all(): Promise<StoredMcpSession[]>;
};

/** Tries of a change before it fails as unavailable. */
export const CHANGES_MAX = 10;
