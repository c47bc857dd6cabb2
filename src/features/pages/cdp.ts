import { connectCdp } from '#src/browsers/link/cdp.ts';
import { EVENT_KEPT, readPageMessage, type PageCdp } from './page-events.ts';
import { connectShortened } from './short-events.ts';

/**
 * Connects to a browser's CDP by its ticket, for one call. Answers are parsed; of events those that
 * are used, shortened as they come; what cannot be read ends the connection.
 * @throws ConnectionLost, or the reason of the aborted signal
 */
export function connectPage(
  url: string,
  bounds: { signal: AbortSignal; bytesMax: number },
): Promise<PageCdp> {
  const socket = {
    createConnection: connectShortened(EVENT_KEPT, url.startsWith('wss:')),
    // An event may be cut within a character.
    skipUTF8Validation: true,
  };
  return connectCdp(url, { ...bounds, read: readPageMessage, socket });
}
