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

/** What an address of this service may hold behind its `#`. */
export type Offered = { key: string | null; operator: string | null };

/** Credentials of the address that would replace the tab's; null: none. It waits for an answer. */
export const offered = signal<Offered | null>(null);

/**
 * Takes the key of `#key=…`, and the operator's token of `#operator=…` or of `#key=…&operator=…`;
 * removes them from the address and the history at once. They sign in a tab that is signed out;
 * where they would replace other credentials of the tab, the person is asked first: anybody can
 * make a link with a key of his own.
 */
export function takeKeyFromAddress(): void {
  const { hash, origin, pathname, search } = location;
  if (!/^#(key|operator)=/.test(hash)) return;
  history.replaceState(null, '', origin + pathname + search);
  const given = new URLSearchParams(hash.slice(1));
  const found = { key: given.get('key') || null, operator: given.get('operator') || null };
  const asks = differs(found.key, credential.value) || differs(found.operator, operatorToken.value);
  if (asks) offered.value = found;
  else accept(found);
}

function differs(one: string | null, ours: string | null): boolean {
  return one !== null && ours !== null && one !== ours;
}

/** The person's answer to what the address offers. */
export function answerOffer(isYes: boolean): void {
  const found = offered.value;
  offered.value = null;
  if (isYes && found !== null) accept(found);
}

function accept({ key, operator }: Offered): void {
  if (key !== null) signIn(key);
  if (operator !== null) setOperatorToken(operator);
}
