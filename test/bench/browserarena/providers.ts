import { createClient } from '#src/apps/client/client.ts';
import { launchBare, type BareBrowser, type Programs } from '../lifecycle/bare-browser.ts';
import type { ArenaProvider } from './harness-types.ts';

/** The service, by its TypeScript client with the client's own settings. */
export function serviceProvider(service: { url: string; apiKey: string }): ArenaProvider {
  const { sessions } = createClient(service);
  return {
    name: 'BSS',
    computeCost: () => 0,
    async create() {
      const { id, cdp_url: cdpUrl } = await sessions.create();
      if (cdpUrl === null) throw new Error(`session ${id} has no address`);
      return { id, cdpUrl };
    },
    release: async (id) => void (await sessions.stop(id)),
  };
}

/**
 * Headful Chromium with an X server of its own, launched and killed by hand: what a session of the
 * service has. `removed` resolves once what was released has left nothing behind.
 */
export function bareProvider(programs: Programs): ArenaProvider & { removed(): Promise<unknown> } {
  const open = new Map<string, BareBrowser>();
  const removals: Promise<void>[] = [];
  return {
    name: 'BARE',
    computeCost: () => 0,
    async create() {
      const browser = await launchBare(programs, 'headful');
      open.set(browser.address, browser);
      return { id: browser.address, cdpUrl: browser.address };
    },
    async release(id) {
      const browser = open.get(id);
      if (browser === undefined) throw new Error(`no browser at ${id}`);
      open.delete(id);
      await browser.exit();
      removals.push(browser.remove());
    },
    removed: () => Promise.all(removals),
  };
}
