import type { ComponentChildren } from 'preact';

/** What a page shows in place of its content: that it loads, why it failed, how to begin. */

export function Loading({ what }: { what: string }) {
  return (
    <p class="muted" role="status">
      Loading {what}…
    </p>
  );
}

type FailureProps = { what: string; failure: string | null; retry?: () => void };

/** Why something could not be done; nothing while `failure` is null. */
export function Failure({ what, failure, retry }: FailureProps) {
  if (failure === null) return null;
  return (
    <div class="notice bad" role="alert">
      <span>
        {what}: {failure}
      </span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** An empty page teaches what would be here, and how it gets there. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
