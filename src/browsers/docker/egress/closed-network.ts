import type Docker from 'dockerode';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createAddressRing, type NextAddress } from '../addresses.ts';
import type { BrowserImage } from '../browser-image.ts';
import { openGuard, type Guard } from '../guard.ts';
import { NotIsolated } from '../isolation.ts';
import { EGRESS, RELAY } from '../naming.ts';
import { ensureNetwork } from '../network.ts';
import type { Confinement } from '../spec.ts';

/** What is different for the containers of a network without a way out. */
export type ClosedConfinement = Pick<Confinement, 'network' | 'dns'> & { nextAddress: NextAddress };

/** The network of the browsers whose only way out is their proxy. */
export type ClosedNetwork = {
  /**
   * Creates the network, closes it and verifies that, at the first call; it is checked from then
   * on. @throws NotIsolated where that fails, whatever DOCKER_ISOLATION says
   */
  open(): Promise<ClosedConfinement>;
  /**
   * What a new browser of the image gets: the network, opened.
   * @throws NotIsolated for an image without a relay: on this network it would reach nothing
   */
  openFor(image: BrowserImage): Promise<ClosedConfinement>;
  /** As a guard's; nothing as long as the network was never opened. */
  check(): Promise<void>;
};

/**
 * An address that no host has: the engine would ask name servers for a container by itself, and
 * this one it asks from within the container, whose packets are refused.
 */
const NO_RESOLVER = '192.0.2.1';

/** `name` is that of the sessions' network, and `confinement` that of its containers. */
export function createClosedNetwork(given: {
  docker: Docker;
  name: string;
  confinement: Confinement;
  rulesImage: () => Promise<string>;
  log: Pick<Logger, 'info' | 'warn'>;
}): ClosedNetwork {
  const { docker, confinement, rulesImage, log } = given;
  const name = `${given.name}-egress`;
  let opening: Promise<{ guard: Guard; closed: ClosedConfinement }> | null = null;

  async function openOnce() {
    const network = await ensureNetwork(docker, name, { isClosed: true });
    if (network.isClosed !== true)
      throw new NotIsolated(`the engine has a network ${name} that leads outside; remove it`);
    const closed: ClosedConfinement = {
      network: name,
      dns: [NO_RESOLVER],
      nextAddress: createAddressRing(() => dependencies.network),
    };
    const dependencies = {
      docker,
      network,
      rulesImage,
      // Its probes run from the image of the time.
      get confinement() {
        return { ...confinement, ...closed };
      },
    };
    return { guard: await openGuard({ dependencies, isolation: 'required', log }), closed };
  }
  async function open() {
    opening ??= openOnce();
    const mine = opening;
    try {
      return (await mine).closed;
    } catch (error) {
      if (opening === mine) opening = null;
      throw error;
    }
  }
  return {
    open,
    async openFor({ name: image, hasRelay }) {
      if (!hasRelay)
        throw new NotIsolated(`the image ${image} has no relay (the label ${EGRESS}=${RELAY})`);
      return await open();
    },
    async check() {
      const opened = await opening?.catch(() => null);
      await opened?.guard.check();
    },
  };
}
