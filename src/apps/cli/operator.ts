import { userInfo } from 'node:os';
import type { EventMetadata } from '#events/envelope.ts';
import { newId } from '#src/kernel/ids.ts';

/** Metadata of the events that a command appends: the operating system's user is the actor. */
export function operatorMetadata(): EventMetadata {
  return {
    actor: { kind: 'operator', id: userName() },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
  };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user may have no entry in /etc/passwd.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
