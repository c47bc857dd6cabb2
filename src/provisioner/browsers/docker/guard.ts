import type { Log } from '#src/telemetry/logger.ts';
import { messageOf } from './engine.ts';
import { checkIsolation, enforceRules, listRules, NotIsolated } from './isolation.ts';
import type { IsolationParts } from './isolation.ts';
import { ensureNetwork } from './network.ts';

/** The sessions' network as it was proved to be, and a look whether it still is. */
export type Guard = {
  /**
   * Looks whether the network is there and its rules are in force as they were proved: a firewall
   * that is loaded anew takes them away, a clean-up the network. What is missing is put back and
   * proved anew, and that is told.
   * @throws NotIsolated where that fails, and isolation is required
   */
  check(): Promise<void>;
};

export type GuardOptions = {
  parts: IsolationParts;
  /** Whether browsers may run all the same. */
  isolation: 'required' | 'best-effort';
  log: Pick<Log, 'info' | 'warn'>;
};

/**
 * Puts the rules in force and proves them, before any browser runs.
 * @throws NotIsolated saying why they are not, where isolation is required
 */
export async function openGuard({ parts, isolation, log }: GuardOptions): Promise<Guard> {
  const { name } = parts.network;
  /** The rules as nft showed them when they were proved; null: they were not. */
  let proved: string | null = null;

  async function prove(): Promise<void> {
    await enforceRules(parts);
    await checkIsolation(parts);
    proved = await listRules(parts);
    log.info({ network: name }, 'sessions reach neither each other nor private networks: checked');
  }
  async function look(): Promise<void> {
    const network = await ensureNetwork(parts.docker, name);
    const isSame =
      network.subnet === parts.network.subnet && network.bridge === parts.network.bridge;
    if (isSame && proved !== null && (await listRules(parts)) === proved) return;
    log.warn({ network: name }, 'the rules of the sessions’ network are not as they were proved');
    proved = null;
    parts.network = network;
    await prove();
  }
  async function attempt(step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (error) {
      const why = `sessions on the network ${name} are not isolated: ${messageOf(error)}`;
      if (isolation === 'required') throw new NotIsolated(why, { cause: error });
      log.warn({ err: error, network: name }, why);
      return false;
    }
  }
  // Who has said that it may be so is not told again every minute.
  if (!(await attempt(prove))) return { check: async () => {} };
  return { check: async () => void (await attempt(look)) };
}
