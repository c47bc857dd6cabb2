import { useState } from 'preact/hooks';

/** A text to copy, such as a command. */
export function CopyBlock({ title, text }: { title: string; text: string }) {
  const [outcome, setOutcome] = useState('Copy');
  async function copy() {
    const done = await navigator.clipboard.writeText(text).then(
      () => 'Copied',
      () => 'Select and copy',
    );
    setOutcome(done);
  }
  return (
    <figure class="copy">
      <figcaption>
        {title}
        <button type="button" class="quiet" aria-live="polite" onClick={() => void copy()}>
          {outcome}
        </button>
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
