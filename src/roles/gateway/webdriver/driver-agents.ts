import { Agent } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DriverAddress } from '#src/browsers/link/browser-link.ts';
import { dial } from '../connections/dial.ts';

/** Keeps the connections to the drivers of sessions between their commands. */
export type DriverAgents = {
  of(driver: DriverAddress): Agent;
} & Disposable;

/** A script's next command comes within milliseconds; a person at a debugger waits for one more. */
const KEPT_MS = 30_000;
/** A client sends one command after the other. The gateway bounds what a session has open. */
const IDLE_MAX = 2;
const NEVER = new AbortController().signal;

class DriverAgent extends Agent {
  readonly #driver: DriverAddress;
  readonly #timeoutMs: number;

  constructor(driver: DriverAddress, timeoutMs: number) {
    super({ keepAlive: true, maxFreeSockets: IDLE_MAX, timeout: KEPT_MS });
    this.#driver = driver;
    this.#timeoutMs = timeoutMs;
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const dialled = dial(this.#driver, { timeoutMs: this.#timeoutMs, signal: NEVER });
    void dialled.then(
      (socket) => callback?.(null, socket),
      // Node takes no socket beside an error.
      (error: Error) => callback?.(error, undefined as never),
    );
  }
}

/**
 * One agent for each driver that is in use. It is dropped after 30 s without a command.
 * @param dialTimeoutMs for a connection
 */
export function createDriverAgents(dialTimeoutMs: number): DriverAgents {
  const agents = new Map<string, { agent: Agent; timer: NodeJS.Timeout }>();

  return {
    of(driver) {
      const key = `${driver.host}:${driver.port}${driver.path}`;
      let known = agents.get(key);
      if (known === undefined) {
        // Commands that are under way keep their connections; the idle ones time out.
        const timer = setTimeout(() => agents.delete(key), KEPT_MS).unref();
        known = { agent: new DriverAgent(driver, dialTimeoutMs), timer };
        agents.set(key, known);
      }
      known.timer.refresh();
      return known.agent;
    },
    [Symbol.dispose]() {
      for (const { agent, timer } of agents.values()) {
        clearTimeout(timer);
        agent.destroy();
      }
      agents.clear();
    },
  };
}
