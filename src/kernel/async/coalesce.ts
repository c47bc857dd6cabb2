/**
 * Requests of one key share a call that begins after all of them: at most one call runs at a time
 * for each key, and at most one more waits, however many ask.
 */
export function coalesce<Result>(
  call: (key: string) => Promise<Result>,
): (key: string) => Promise<Result> {
  const calls = new Map<string, { running: Promise<Result>; next: Promise<Result> | null }>();

  function start(key: string): Promise<Result> {
    const running = call(key);
    const own = { running, next: null };
    calls.set(key, own);
    const ended = () => {
      if (own.next === null) calls.delete(key);
    };
    running.then(ended, ended);
    return running;
  }
  return (key) => {
    const own = calls.get(key);
    if (own === undefined) return start(key);
    const begin = () => start(key);
    own.next ??= own.running.then(begin, begin);
    return own.next;
  };
}
