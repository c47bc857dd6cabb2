import type { McpSession, McpSessions } from './mcp-sessions.ts';
import type { Clock } from './work-queue.memory.ts';

/** MCP sessions of this process, by a clock that tests set. */
export function createMemoryMcpSessions(clock: Clock): McpSessions {
  const stored = new Map<string, { session: McpSession; revision: number; at: number }>();
  let revisions = 0;
  function write(id: string, session: McpSession) {
    revisions += 1;
    stored.set(id, { session: structuredClone(session), revision: revisions, at: clock.now() });
  }
  return {
    create(id, session) {
      if (stored.has(id)) return Promise.reject(new RangeError(`MCP session ${id} exists`));
      write(id, session);
      return Promise.resolve();
    },
    get: (id) => Promise.resolve(structuredClone(stored.get(id)?.session ?? null)),
    change(id, next) {
      const found = stored.get(id);
      if (found === undefined) return Promise.resolve(null);
      const changed = next(structuredClone(found.session), found.revision);
      if (changed !== null) write(id, changed);
      return Promise.resolve(changed);
    },
    remove(id) {
      stored.delete(id);
      return Promise.resolve();
    },
    all() {
      const now = clock.now();
      const all = [...stored].map(([id, { session, revision, at }]) => {
        return { ...structuredClone(session), id, revision, ageMs: now - at };
      });
      return Promise.resolve(all);
    },
  };
}
