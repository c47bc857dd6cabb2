import { useEffect, useState } from 'preact/hooks';
import { SERVICE_URL } from '../api/service-url.ts';
import { connection } from './organization-events.ts';

/** The service answers this from what it knows, without a request to another part. */
const ASK_EVERY_MS = 3000;
/** A service that does not answer within this hangs. */
const ANSWER_MS = 5000;

type Health = { dependencies: { database: 'healthy' | 'degraded' | 'unhealthy' } };

const SENTENCES = {
  unreachable: 'The service does not answer. What this page shows may be old.',
  unhealthy: 'The event store does not answer: sessions can neither be created nor changed.',
  degraded: 'The read model does not answer or is behind: lists may be late or missing.',
} as const;

/** What of the service is away, at the top of every page; nothing while all is well. */
export function ServiceHealth() {
  const trouble = useTrouble();
  const { broken } = connection.value;
  return (
    <>
      {broken !== null && (
        <p class="notice warn" role="alert">
          Not live: {broken} The dashboard connects again by itself and then catches up.
        </p>
      )}
      {trouble !== null && !(trouble === 'unreachable' && broken !== null) && (
        <p class="notice warn" role="alert">
          {SENTENCES[trouble]} The dashboard tries again by itself.
        </p>
      )}
    </>
  );
}

/** Asked again and again while the tab is looked at, and at once when the stream breaks. */
function useTrouble(): keyof typeof SENTENCES | null {
  const [trouble, setTrouble] = useState<keyof typeof SENTENCES | null>(null);
  const { isOpen } = connection.value;
  useEffect(() => {
    const stop = new AbortController();
    let isAsking = false;
    async function ask() {
      if (document.hidden || isAsking) return;
      isAsking = true;
      const found = await troubleOf(stop.signal);
      isAsking = false;
      if (!stop.signal.aborted) setTrouble(found);
    }
    void ask();
    const timer = setInterval(() => void ask(), ASK_EVERY_MS);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [isOpen]);
  return trouble;
}

async function troubleOf(signal: AbortSignal): Promise<keyof typeof SENTENCES | null> {
  try {
    const signals = [signal, AbortSignal.timeout(ANSWER_MS)];
    const answer = await fetch(`${SERVICE_URL}/api/health`, { signal: AbortSignal.any(signals) });
    if (answer.status >= 500) return 'unreachable';
    // A service behind another name of this machine refuses to tell its health; it answers.
    if (!answer.ok) return null;
    const { database } = ((await answer.json()) as Health).dependencies;
    return database === 'healthy' ? null : database;
  } catch {
    return 'unreachable';
  }
}
