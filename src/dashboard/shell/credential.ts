import { signal } from '@preact/signals';

const KEY = 'bss-key';
const OPERATOR = 'bss-operator';

/** The API key of this tab; null: signed out. It ends with the tab. */
export const credential = signal<string | null>(sessionStorage.getItem(KEY));
/** OPERATOR_TOKEN, for the pages of operators; null: not given. It ends with the tab. */
export const operatorToken = signal<string | null>(sessionStorage.getItem(OPERATOR));
/** Why the last sign-in ended, as a sentence. */
export const signedOutBecause = signal<string | null>(null);

export function signIn(key: string): void {
  sessionStorage.setItem(KEY, key);
  signedOutBecause.value = null;
  credential.value = key;
}

export function signOut(reason: string | null): void {
  sessionStorage.removeItem(KEY);
  setOperatorToken(null);
  signedOutBecause.value = reason;
  credential.value = null;
}

export function setOperatorToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(OPERATOR);
  else sessionStorage.setItem(OPERATOR, token);
  operatorToken.value = token;
}

/** Signs in with the key of `#key=…`, and removes it from the address and the history at once. */
export function takeKeyFromAddress(): void {
  const { hash, pathname, search } = location;
  if (!hash.startsWith('#key=')) return;
  history.replaceState(null, '', pathname + search);
  const key = decodeURIComponent(hash.slice('#key='.length));
  if (key !== '') signIn(key);
}
