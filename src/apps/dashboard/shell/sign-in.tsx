import { useState } from 'preact/hooks';
import { signedOutBecause, signIn } from '../api/credential.ts';
import { sentenceOf } from '../api/api-client.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { fieldOf } from './form-field.ts';

export function SignIn() {
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const key = fieldOf(event.currentTarget as HTMLFormElement, 'key');
    setBusy(true);
    setFailure(await refusalOf(key));
    setBusy(false);
  }
  const why = failure ?? signedOutBecause.value;
  return (
    <main class="sign-in" id="main">
      <form class="card" onSubmit={(event) => void submit(event)}>
        <span class="mark large" aria-hidden="true" />
        <h1>Browser Session Service</h1>
        <p class="muted">Sign in with an API key of your organization. This tab alone keeps it.</p>
        {why !== null && (
          <p class="notice bad" role="alert">
            {why}
          </p>
        )}
        <label>
          API key
          <input name="key" type="password" autocomplete="off" required placeholder="bss_…" />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Checking…' : 'Sign in'}
        </button>
        <p class="muted small">
          No key? An owner or an operator issues one: <code>./bss keys issue</code>
        </p>
      </form>
    </main>
  );
}

/** Signs in if the service accepts the key; else why not. */
async function refusalOf(key: string): Promise<string | null> {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(`${SERVICE_URL}/api/organization`, { headers });
    if (answer.ok) {
      signIn(key);
      return null;
    }
    if (answer.status === 401) return 'The service does not know this key. Is it complete?';
    return `The service answered ${answer.status}. Try again in a moment.`;
  } catch (error) {
    return `The service cannot be reached (${sentenceOf(error)}).`;
  }
}
