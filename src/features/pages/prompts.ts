import { CdpRefusal } from '#src/browsers/link/cdp.ts';
import type { PageCdp, PageEvent } from './page-events.ts';

/**
 * What a browser asks a person: a call has none, and a page may wait for the answer for ever. It is
 * refused, in the page, its frames, workers and windows.
 */

/** Each request is held until it is let go on: only then is a password asked of this connection. */
const REQUESTS = [
  { urlPattern: 'http*' },
  { urlPattern: 'http*', resourceType: 'Document', requestStage: 'Response' },
];
/** What Chromium asks about, by the names of the Permissions API. */
const ASKED = [
  'camera',
  'clipboard-read',
  'geolocation',
  'idle-detection',
  'local-fonts',
  'local-network-access',
  'microphone',
  'midi',
  'notifications',
  'storage-access',
  'top-level-storage-access',
  'window-management',
];

/**
 * Has the browser ask this connection, and refuses what has to be refused before it is asked for.
 * @param granted what the session's pages are granted, as its create named it
 */
export async function refusePrompts(cdp: PageCdp, granted: readonly string[]): Promise<void> {
  await Promise.all([
    cdp.send('Fetch.enable', { handleAuthRequests: true, patterns: REQUESTS }),
    // Windows that the page opens: a dialog of theirs holds up a renderer that both may share.
    cdp.send('Target.setAutoAttach', {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      filter: [{ type: 'page' }],
    }),
    ...ASKED.filter((name) => !granted.some((one) => one.startsWith(name))).map((name) =>
      unlessRefused(cdp.send('Browser.setPermission', { permission: { name }, setting: 'denied' })),
    ),
  ]);
}

/** Answers an event that asks something; a browser that does not take the answer knows better. */
export function answerPrompt(cdp: PageCdp, event: PageEvent): void {
  const send = (method: string, params: object, sessionId: string | null) =>
    void cdp.send(method, params, sessionId ?? undefined).catch(() => undefined);
  switch (event.method) {
    case 'Fetch.authRequired': {
      const { requestId } = event;
      const authChallengeResponse = { response: 'CancelAuth' };
      return send('Fetch.continueWithAuth', { requestId, authChallengeResponse }, event.sessionId);
    }
    case 'Page.javascriptDialogOpening':
      // The page stands still until it is answered.
      return send('Page.handleJavaScriptDialog', { accept: false }, event.sessionId);
    case 'Target.attachedToTarget':
      send('Page.enable', {}, event.attachedSessionId);
      return send('Runtime.runIfWaitingForDebugger', {}, event.attachedSessionId);
    default:
  }
}

/** Another version of Chromium knows other permissions. */
async function unlessRefused(asked: Promise<unknown>): Promise<void> {
  await asked.catch((error: unknown) => {
    if (!(error instanceof CdpRefusal)) throw error;
  });
}
