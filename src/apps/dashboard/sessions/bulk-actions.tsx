import { useState } from 'preact/hooks';
import { sentenceOf } from '../api/api-client.ts';
import { may } from '../api/caller.ts';
import { Confirm } from '../shell/confirm.tsx';
import { query } from '../shell/router.ts';
import { ACTIONS, type ActionName } from './actions.ts';
import { eachOf } from './bounded.ts';
import { filtersOf } from './filters.ts';
import { stopFilterOf } from './stop-filter.ts';
import { StopMatching } from './stop-matching.tsx';

const AT_ONCE = 4;
/** What can be done with the selected sessions; each asks first, with the count. */
export function BulkActions({ ids, clear }: { ids: readonly string[]; clear: () => void }) {
  const [asking, ask] = useState<ActionName | null>(null);
  const [report, setReport] = useState<string | null>(null);
  const filter = stopFilterOf(filtersOf(query.value));
  if (!may('member')) return null;
  async function run(name: ActionName) {
    ask(null);
    const { run: act, done } = ACTIONS[name];
    const failures: string[] = [];
    const chosen = [...ids];
    await eachOf(chosen, AT_ONCE, async (id) => {
      await act(id).catch((error: unknown) => failures.push(sentenceOf(error)));
    });
    const refused = failures.length === 0 ? '' : ` ${failures.length} refused: ${failures[0]}`;
    setReport(`${chosen.length - failures.length} ${done}.${refused}`);
    clear();
  }
  return (
    <div class="bulk" role="status">
      {ids.length > 0 && (
        <>
          <strong>{ids.length} selected</strong>
          <button type="button" onClick={() => ask('extend')}>
            Extend by 30 min
          </button>
          <button type="button" class="danger" onClick={() => ask('stop')}>
            Stop
          </button>
          <button type="button" class="quiet" onClick={clear}>
            Clear selection
          </button>
        </>
      )}
      {ids.length === 0 && filter !== null && (
        <StopMatching key={JSON.stringify(filter)} filter={filter} />
      )}
      {ids.length === 0 && report}
      {asking !== null && (
        <Confirm
          question={`${ACTIONS[asking].verb} ${countOf(ids.length)}?`}
          verb={ACTIONS[asking].verb}
          onAnswer={(isYes) => (isYes ? void run(asking) : ask(null))}
        >
          {ACTIONS[asking].hint}
        </Confirm>
      )}
    </div>
  );
}

const countOf = (count: number) => (count === 1 ? '1 session' : `${count} sessions`);
