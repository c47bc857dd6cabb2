import { signal } from '@preact/signals';
import { PAGE_NAMES, PAGES } from '../../../roles/api/dashboard/pages.ts';
import { operatorToken } from './credential.ts';

const RANKS = ['viewer', 'member', 'admin', 'owner'] as const;
export type Role = (typeof RANKS)[number];

/** Of GET /api/organization. */
export type Caller = { id: string; name: string; organization_role: Role; user_id: string };

/** Whose key the tab has; null until it is known. */
export const caller = signal<Caller | null>(null);

/** Whether the tab's credentials suffice. The API decides; this hides what it would refuse. */
export function may(needs: Role | 'operator'): boolean {
  if (needs === 'operator') return operatorToken.value !== null;
  const role = caller.value?.organization_role;
  return role !== undefined && RANKS.indexOf(role) >= RANKS.indexOf(needs);
}

/** Pages of operators are listed to all: they ask for the token themselves. */
export function menuPages() {
  return PAGE_NAMES.filter((name) => {
    const { menu, needs } = PAGES[name];
    return menu && (needs === 'operator' || may(needs));
  });
}
