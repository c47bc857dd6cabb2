import { computed, signal } from '@preact/signals';
import { placeOf } from '../../../roles/api/dashboard/pages.ts';
import { SERVICE_URL } from '../api/service-url.ts';

/** Its begin may be `//`, where a proxy takes two slashes for one: it is no address by itself. */
const BASE = new URL(`${SERVICE_URL}/`).pathname.slice(0, -1);

/** The address of the page below that of the service: path and query. */
export const address = signal(hereOf(location));
addEventListener('popstate', () => {
  address.value = hereOf(location);
});

function hereOf({ pathname, search }: Pick<URL, 'pathname' | 'search'>): string {
  return pathname.slice(BASE.length) + search;
}

const url = computed(() => new URL(location.origin + address.value));

/** The page that the address names; null: there is none. */
export const place = computed(() => placeOf(url.value.pathname));

export const query = computed(() => url.value.searchParams);

export function go(to: string): void {
  history.pushState(null, '', SERVICE_URL + to);
  address.value = to;
  scrollTo(0, 0);
  // Where the keyboard goes on: at the new page's content, not at a link that is gone.
  document.getElementById('main')?.focus({ preventScroll: true });
}

/** Changes the query of the page in place: Back leads to the page before. */
export function setQuery(parameters: URLSearchParams): void {
  const text = parameters.toString();
  const here = location.origin + location.pathname;
  history.replaceState(null, '', here + (text === '' ? '' : `?${text}`));
  address.value = hereOf(location);
}

/** Changes one parameter of the query in place; null removes it. */
export function setParameter(name: string, value: string | null): void {
  const parameters = new URLSearchParams(query.value);
  if (value === null) parameters.delete(name);
  else parameters.set(name, value);
  setQuery(parameters);
}

/** Follows a link within the dashboard without loading the page anew. */
export function follow(event: MouseEvent): void {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const { href } = event.currentTarget as HTMLAnchorElement;
  event.preventDefault();
  go(href.slice(SERVICE_URL.length));
}

export const sessionPath = (id: string) => `/sessions/${encodeURIComponent(id)}`;
