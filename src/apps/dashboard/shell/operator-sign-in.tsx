import { useState } from 'preact/hooks';
import { setOperatorToken } from '../api/credential.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { fieldOf } from './form-field.ts';
import { Failure } from './states.tsx';

/** Asks for OPERATOR_TOKEN, which the pages of operators need beside the key. */
export function OperatorSignIn() {
  const [failure, setFailure] = useState<string | null>(null);
  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const token = fieldOf(event.currentTarget as HTMLFormElement, 'token');
    setFailure(await refusalOf(token));
  }
  return (
    <div class="sign-in">
      <form class="card" onSubmit={(event) => void submit(event)}>
        <h1>For operators</h1>
        <p class="muted">
          This page shows all organizations and servers. It needs the operator’s token: the variable
          OPERATOR_TOKEN, or the file <code>operator-token</code> in the data folder.{' '}
          <code>npm start</code> prints an address that brings it along.
        </p>
        <Failure what="Not signed in" failure={failure} />
        <label>
          Operator’s token
          <input name="token" type="password" autocomplete="off" required />
        </label>
        <button type="submit" class="primary">
          Go on
        </button>
      </form>
    </div>
  );
}

/** Keeps the token if the service accepts it; else why not. */
async function refusalOf(token: string): Promise<string | null> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${SERVICE_URL}/api/operator`, { headers }).catch(() => null);
  if (answer === null) return 'The service does not answer.';
  if (answer.ok) {
    setOperatorToken(token);
    return null;
  }
  if (answer.status === 404) return 'This service has no OPERATOR_TOKEN.';
  if (answer.status === 401) return 'This is not the token of this service.';
  return `The service answered ${answer.status}. Try again in a moment.`;
}
