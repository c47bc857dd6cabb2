import { useEffect, useRef, useState } from 'preact/hooks';
import './live-screen.css';

type ScreenProps = { viewerUrl: string; password: string; close: () => void };

/** The session's screen, steered with keyboard and pointer unless it is only watched. */
export function LiveScreen({ viewerUrl, password, close }: ScreenProps) {
  const frame = useRef<HTMLElement>(null);
  const screen = useRef<HTMLDivElement>(null);
  const [times, setTimes] = useState(0);
  const [state, setState] = useState('Connecting…');
  const [isWatching, setWatching] = useState(false);
  const connection = useRef<{ viewOnly: boolean } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    setState('Connecting…');
    void connect(stop.signal);
    return () => stop.abort();

    async function connect(signal: AbortSignal) {
      const RFB = await loadLibrary().catch(() => null);
      if (signal.aborted || screen.current === null) return;
      if (RFB === null) return setState('The viewer could not be loaded.');
      const socket = new WebSocket(socketOf(viewerUrl), ['binary']);
      const rfb = new RFB(screen.current, socket, { credentials: { password } });
      rfb.scaleViewport = true;
      rfb.viewOnly = isWatching;
      rfb.background = 'transparent';
      connection.current = rfb;
      rfb.addEventListener('connect', () => setState('Connected'));
      socket.addEventListener('close', ({ reason }) => {
        if (!signal.aborted) setState(reason === '' ? 'Disconnected' : `Disconnected: ${reason}`);
      });
      signal.addEventListener('abort', () => {
        if (socket.readyState !== WebSocket.CLOSED) rfb.disconnect();
      });
    }
  }, [viewerUrl, password, times]);
  useEffect(() => {
    if (connection.current !== null) connection.current.viewOnly = isWatching;
  }, [isWatching]);
  return (
    <section class="screen card flush" ref={frame} aria-label="Live screen">
      <div class="screen-bar">
        <span role="status">{state}</span>
        {state.startsWith('Disconnected') && (
          <button type="button" onClick={() => setTimes(times + 1)}>
            Connect again
          </button>
        )}
        <button
          type="button"
          class="quiet"
          aria-pressed={isWatching}
          onClick={() => setWatching(!isWatching)}
        >
          Only watch
        </button>
        <button type="button" class="quiet" onClick={() => void frame.current?.requestFullscreen()}>
          Full screen
        </button>
        <a href={viewerUrl} target="_blank" rel="noreferrer">
          In a tab of its own
        </a>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      <div class="screen-view" ref={screen} />
    </section>
  );
}

/** The socket stands beside the viewer's page, whose address has TLS wherever that is trusted. */
function socketOf(viewerUrl: string): URL {
  const url = new URL('websockify', viewerUrl);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

async function loadLibrary() {
  // noVNC tries the browser's H.264 decoder first, and waits for ever where that does not answer.
  // The screens send no H.264.
  Reflect.deleteProperty(globalThis, 'VideoDecoder');
  return (await import('@novnc/novnc')).default;
}
