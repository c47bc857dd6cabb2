import { useEffect, useState } from 'preact/hooks';
import { send } from '../api/api-client.ts';

/** What an ended session's browser showed last; nothing where the picture cannot be had. */
export function LastPicture({ id }: { id: string }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    let made: string | null = null;
    async function read() {
      const answer = await send(`/api/sessions/${encodeURIComponent(id)}/thumbnail`, {
        signal: stop.signal,
      });
      const picture = await answer.blob();
      if (stop.signal.aborted) return;
      made = URL.createObjectURL(picture);
      setUrl(made);
    }
    // The page is complete without it, and its retention may be over.
    read().catch(() => undefined);
    return () => {
      stop.abort();
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [id]);
  return url === null ? null : (
    <figure class="last-picture">
      <img src={url} alt="What the session’s browser showed last" />
      <figcaption>What it showed last</figcaption>
    </figure>
  );
}
