import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

type ConfirmProps = {
  question: string;
  /** The word of the button that goes on. */
  verb: string;
  onAnswer: (isYes: boolean) => void;
  /** What follows from it. */
  children: ComponentChildren;
};

/** Asks before an action that ends, spends or reveals something. Escape is a no. */
export function Confirm({ question, verb, onAnswer, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="question" onCancel={() => onAnswer(false)}>
      <h2 id="question">{question}</h2>
      <div class="muted">{children}</div>
      <div class="actions">
        <button type="button" onClick={() => onAnswer(false)}>
          Cancel
        </button>
        <button type="button" class="primary" onClick={() => onAnswer(true)}>
          {verb}
        </button>
      </div>
    </dialog>
  );
}
