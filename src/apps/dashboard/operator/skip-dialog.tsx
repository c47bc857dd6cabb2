import { useState } from 'preact/hooks';
import { Confirm } from '../shell/confirm.tsx';
import type { DeadLetter } from './answers.ts';
import { placeOf } from './words.ts';

export type SkipAnswer = { reason: string; operator?: string };

type SkipDialogProps = { letter: DeadLetter; onAnswer: (answer: SkipAnswer | null) => void };

/** Asks why, and who; without a reason nothing is skipped. Null: no. */
export function SkipDialog({ letter, onAnswer }: SkipDialogProps) {
  const [reason, setReason] = useState('');
  const [name, setName] = useState('');
  const [isMissing, setMissing] = useState(false);
  function answer(isYes: boolean) {
    if (!isYes) return onAnswer(null);
    if (reason.trim() === '') return setMissing(true);
    const operator = name.trim();
    onAnswer({ reason: reason.trim(), ...(operator === '' ? {} : { operator }) });
  }
  return (
    <Confirm question={`Skip ${placeOf(letter)}?`} verb="Skip for good" onAnswer={answer}>
      <p>
        {letter.failed_by} will never handle it; what it would have changed stays as it is. This
        cannot be undone.
      </p>
      <div class="fields">
        <label>
          Reason, kept with the decision
          <input
            value={reason}
            maxLength={1024}
            required
            aria-invalid={isMissing}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {isMissing && (
          <p class="notice bad" role="alert">
            A reason is needed: it is all that a later reader has.
          </p>
        )}
        <label>
          Your name (optional)
          <input
            value={name}
            maxLength={128}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
      </div>
    </Confirm>
  );
}
