import { connectCdp, readMessage, type CdpEvent } from '#src/browsers/link/cdp.ts';
import type { RunningBrowser } from '../browsers.ts';

/** An address of a page may have 2 MB. */
const MESSAGE_BYTES_MAX = 4 * 1024 ** 2;

/** Resolves when the browser has answered a CDP command and reported an open page. */
export async function cdpReady(address: RunningBrowser['cdp'], signal: AbortSignal): Promise<void> {
  const options = { signal, bytesMax: MESSAGE_BYTES_MAX, read: readMessage };
  using cdp = await connectCdp(address, options);
  const pageOpen = Promise.withResolvers<void>();
  cdp.onEvent((event) => {
    if (typeOf(event) === 'page') pageOpen.resolve();
  });
  // Its answer proves that CDP works; its events list the present and future pages.
  await cdp.send('Target.setDiscoverTargets', { discover: true });
  await Promise.race([pageOpen.promise, cdp.closed]);
}

/** Of the target that an event is about. */
function typeOf({ params }: CdpEvent): string | undefined {
  return (params as { targetInfo?: { type?: string } }).targetInfo?.type;
}
