import { useState } from 'preact/hooks';
import { post, sentenceOf } from '../api/api-client.ts';
import { Confirm } from '../shell/confirm.tsx';
import type { StopFilter } from './stop-filter.ts';

/** One request of the API stops so many. */
const STOPS_MAX = 1000;

type Stopped = { matched: number; stopped: number; failed?: { error: string }[] };

/** Stops all open sessions that the filter matches, after a question with their number. */
export function StopMatching({ filter }: { filter: StopFilter }) {
  const [report, tell] = useState<string | null>(null);
  const [matched, setMatched] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function send(body: { dry_run: boolean }): Promise<Stopped | null> {
    setBusy(true);
    try {
      return await post<Stopped>('/api/sessions/stop', { filter, ...body });
    } catch (error) {
      tell(`Refused: ${sentenceOf(error)}`);
      return null;
    } finally {
      setBusy(false);
    }
  }
  async function count() {
    tell(null);
    const found = await send({ dry_run: true });
    if (found === null) return;
    if (found.matched === 0) tell('No open session matches.');
    else setMatched(found.matched);
  }
  async function stop() {
    setMatched(null);
    const done = await send({ dry_run: false });
    if (done === null) return;
    const failed = done.failed?.length ?? 0;
    const tried = Math.min(done.matched, STOPS_MAX);
    const parts = [
      [done.stopped, 'stopped.'],
      [failed, 'could not be stopped yet: try again.'],
      [tried - done.stopped - failed, 'no longer matched.'],
      [done.matched - tried, `not stopped yet: one request stops ${STOPS_MAX}.`],
    ] as const;
    const told = parts.filter(([count], at) => count > 0 || at === 0);
    tell(told.map(([count, what]) => `${count} ${what}`).join(' '));
  }
  return (
    <>
      <button type="button" class="danger" disabled={isBusy} onClick={() => void count()}>
        {isBusy ? 'Asking…' : 'Stop all that match'}
      </button>
      {report}
      {matched !== null && (
        <Confirm
          question={`Stop ${matched === 1 ? '1 open session' : `all ${matched} open sessions`}?`}
          verb="Stop"
          onAnswer={(isYes) => (isYes ? void stop() : setMatched(null))}
        >
          All that match the filters end with their browsers, also one that begins to match before
          you confirm. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
