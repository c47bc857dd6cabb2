import { userInfo } from 'node:os';
import type { Cause } from '#events/envelope.ts';
import { newId } from '#src/ids.ts';

/** The person at the terminal as the cause of what a command appends. */
export function operatorCause(): Cause {
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
    // In a container the user may have no entry.
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
