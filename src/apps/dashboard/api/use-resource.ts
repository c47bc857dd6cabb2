import { useEffect, useState } from 'preact/hooks';
import { read, RequestFailed, sentenceOf } from './api-client.ts';

const RETRY_MS = 3000;

export type Resource<Body> = {
  /** The last answer; null: none yet. It stays while it is read again. */
  data: Body | null;
  /** Why the last reading failed, as a sentence. */
  failure: string | null;
  reload: () => void;
};

type Options = {
  /** Read again when this changes, such as the position of the last event. */
  again?: unknown;
  /** Read again at this interval, while the tab is looked at. */
  everyMs?: number;
};

/**
 * What a GET answers. A reading that failed for a passing reason is repeated until it succeeds.
 * @param path null: nothing is read
 */
export function useResource<Body>(
  path: string | null,
  { again, everyMs }: Options = {},
): Resource<Body> {
  const [times, setTimes] = useState(0);
  const [answer, setAnswer] = useState<{ data: Body | null; failure: string | null }>({
    data: null,
    failure: null,
  });
  const reload = () => setTimes((before) => before + 1);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let retry: ReturnType<typeof setTimeout> | undefined;
    async function load(from: string) {
      try {
        const data = await read<Body>(from, stop.signal);
        setAnswer({ data, failure: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        setAnswer(({ data }) => ({ data, failure: sentenceOf(error) }));
        if (error instanceof RequestFailed && error.isTransient)
          retry = setTimeout(reload, error.retryAfterMs ?? RETRY_MS);
      }
    }
    void load(path);
    return () => {
      clearTimeout(retry);
      stop.abort();
    };
  }, [path, again, times]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return { ...answer, reload };
}
