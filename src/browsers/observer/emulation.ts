import type { BrowserSpec } from '../browsers.ts';
import type { ObservedBrowserConnection, ObservedTarget, ObserverPart } from './part.ts';

/** A session that asked for these would get a browser that lacks them, so a launch waits longer. */
const IN_PLACE_MS = 10_000;

/**
 * Gives a browser the place and the permissions that its session asked for. Chromium holds a place
 * for each page, with its iframes, and permissions for each browser context: those of a context
 * that a client makes are granted with its first page. Both end with the connection, and are there
 * again with the next one. What a client sets itself counts from then on.
 */
export const emulation: ObserverPart = {
  name: 'emulation',
  awaitedMs: (launchedWith) => (isWanted(launchedWith) ? IN_PLACE_MS : 0),
  attached: (browser) => grant(browser),
  pages: {
    holds: ({ launchedWith }) => isWanted(launchedWith),
    async attached({ browser, targetId, send }) {
      const { geolocation, permissions } = browser.launchedWith ?? {};
      await Promise.all([
        geolocation === undefined ? null : send('Emulation.setGeolocationOverride', geolocation),
        permissions === undefined ? null : grant(browser, targetId),
      ]);
    },
  },
};

function isWanted(launchedWith: BrowserSpec | null): boolean {
  return launchedWith?.geolocation !== undefined || launchedWith?.permissions !== undefined;
}

/** @param targetId a page of the context; absent: the browser's own context */
async function grant(
  { launchedWith, send }: ObservedBrowserConnection,
  targetId?: ObservedTarget['targetId'],
): Promise<void> {
  const { permissions = [] } = launchedWith ?? {};
  if (permissions.length === 0) return;
  const context = targetId === undefined ? {} : await contextOf(send, targetId);
  await Promise.all(
    permissions.map((name) =>
      send('Browser.setPermission', {
        permission: descriptorOf(name),
        setting: 'granted',
        ...context,
      }),
    ),
  );
}

async function contextOf(
  send: ObservedBrowserConnection['send'],
  targetId: string,
): Promise<{ browserContextId?: string }> {
  type Answer = { targetInfo: { browserContextId?: string } };
  const { targetInfo } = await send<Answer>('Target.getTargetInfo', { targetId });
  const { browserContextId } = targetInfo;
  return browserContextId === undefined ? {} : { browserContextId };
}

function descriptorOf(name: string): object {
  return name === 'midi-sysex' ? { name: 'midi', sysex: true } : { name };
}
