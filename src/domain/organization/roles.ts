import type { Role } from '#events/organization.ts';

/** What a caller wants to do. */
export type Action = 'read' | 'control' | 'administer';

const allowed: Record<Role, readonly Action[]> = {
  viewer: ['read'],
  member: ['read', 'control'],
  admin: ['read', 'control', 'administer'],
  owner: ['read', 'control', 'administer'],
};

/** A viewer reads; a member creates, extends and stops; an admin or owner also issues keys. */
export function mayDo(role: Role, action: Action): boolean {
  return allowed[role].includes(action);
}

/** Whether one of this role may issue and revoke keys of that role: none gives more than it has. */
export function mayGrant(role: Role, granted: Role): boolean {
  return mayDo(role, 'administer') && (granted !== 'owner' || role === 'owner');
}
