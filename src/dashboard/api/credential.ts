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

/**
 * Signs in with the key of `#key=…`, and takes the operator's token of `#operator=…` or of
 * `#key=…&operator=…`; removes them from the address and the history at once.
 */
export function takeKeyFromAddress(): void {
  const { hash, pathname, search } = location;
  if (!/^#(key|operator)=/.test(hash)) return;
  history.replaceState(null, '', pathname + search);
  for (const part of hash.slice(1).split('&')) {
    const [name, value = ''] = part.split('=');
    if (value === '') continue;
    if (name === 'key') signIn(decodeURIComponent(value));
    if (name === 'operator') setOperatorToken(decodeURIComponent(value));
  }
}
