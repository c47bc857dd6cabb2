import { useState } from 'preact/hooks';
import { sentenceOf } from '../api/api-client.ts';
import { may } from '../api/caller.ts';
import { Confirm } from '../shell/confirm.tsx';
import { Failure } from '../shell/states.tsx';
import { ACTIONS, type ActionName } from '../sessions/actions.ts';

/** Extends or stops the session. The page tells the outcome by the session's events. */
export function SessionActions({ id, name }: { id: string; name: string }) {
  const [asking, ask] = useState<ActionName | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  if (!may('member')) return null;
  async function answer(action: ActionName, isYes: boolean) {
    ask(null);
    if (!isYes) return;
    const refused = await ACTIONS[action].run(id).then(() => null, sentenceOf);
    setFailure(refused);
  }
  return (
    <>
      <div class="session-actions">
        <button type="button" onClick={() => ask('extend')}>
          Extend by 30 min
        </button>
        <button type="button" class="danger" onClick={() => ask('stop')}>
          Stop
        </button>
      </div>
      <Failure what="Refused" failure={failure} />
      {asking !== null && (
        <Confirm
          question={`${ACTIONS[asking].verb} ${name}?`}
          verb={ACTIONS[asking].verb}
          onAnswer={(isYes) => void answer(asking, isYes)}
        >
          {ACTIONS[asking].hint}
        </Confirm>
      )}
    </>
  );
}
