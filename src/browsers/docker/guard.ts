import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { messageOf } from './engine.ts';
import { checkIsolation, enforceRules, readRules, NotIsolated } from './isolation.ts';
import type { IsolationDependencies } from './isolation.ts';
import { ensureNetwork } from './network.ts';

/** Checks the isolation of the sessions' network after it has been verified once. */
export type Guard = {
  /**
   * Checks that the network exists and its rules have not changed since they were verified: a
   * firewall's reload removes the rules, a clean-up the network. Restores what is missing, verifies
   * it again and logs that.
   * @throws NotIsolated if that fails and isolation is required
   */
  check(): Promise<void>;
};

export type GuardOptions = {
  dependencies: IsolationDependencies;
  /** `best-effort`: browsers run even if isolation cannot be verified. */
  isolation: 'required' | 'best-effort';
  log: Pick<Logger, 'info' | 'warn'>;
};

/**
 * Loads the rules and verifies them, before any browser runs.
 * @throws NotIsolated with the cause, where isolation is required
 */
export async function openGuard({ dependencies, isolation, log }: GuardOptions): Promise<Guard> {
  const { name } = dependencies.network;
  /** The rules as nft listed them when they were verified; null: not verified. */
  let verified: string | null = null;

  async function verify(): Promise<void> {
    const { isBounded } = await enforceRules(dependencies);
    if (!isBounded)
      log.warn({ network: name }, 'the kernel cannot bound the connections of a session');
    await checkIsolation(dependencies);
    verified = await readRules(dependencies);
    log.info(
      { network: name },
      'network isolation verified: sessions reach neither each other nor private networks',
    );
  }
  async function recheck(): Promise<void> {
    const network = await ensureNetwork(dependencies.docker, name, dependencies.network);
    const isSame =
      network.subnet === dependencies.network.subnet &&
      network.bridge === dependencies.network.bridge;
    if (isSame && verified !== null && (await readRules(dependencies)) === verified) return;
    log.warn({ network: name }, 'network rules changed since they were verified; restoring them');
    verified = null;
    dependencies.network = network;
    await verify();
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
  // With best-effort isolation one warning is enough: no check every minute.
  if (!(await attempt(verify))) return { check: async () => {} };
  return { check: async () => void (await attempt(recheck)) };
}
