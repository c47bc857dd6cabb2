import type { Role } from '#events/organization.ts';

/** The kinds of actions that roles permit. */
export type Action = 'read' | 'control' | 'administer';

const allowed: Record<Role, readonly Action[]> = {
  viewer: ['read'],
  member: ['read', 'control'],
  admin: ['read', 'control', 'administer'],
  owner: ['read', 'control', 'administer'],
};

/**
 * A viewer reads; a member creates, extends and stops sessions; an admin or owner also issues keys.
 */
export function mayDo(role: Role, action: Action): boolean {
  return allowed[role].includes(action);
}

/** Whether a role may issue and revoke keys of another role; none may grant more than it has. */
export function mayGrant(role: Role, granted: Role): boolean {
  return mayDo(role, 'administer') && (granted !== 'owner' || role === 'owner');
}
