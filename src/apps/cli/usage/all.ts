import type { KnownCommand, Usage } from '../command.ts';
import { apiCommands } from './by-api.ts';
import { eventCommands } from './events.ts';
import { installationCommands } from './installation.ts';
import { organizationCommands } from './organizations.ts';
import { serverCommands } from './servers.ts';
import { sessionCommands } from './sessions.ts';

/** Every command of `bss`, in the order of the help. */
export const allCommands: readonly KnownCommand[] = [
  ...organizationCommands,
  ...sessionCommands,
  ...apiCommands,
  ...serverCommands,
  ...eventCommands,
  ...installationCommands,
];

/** How the command of this name is typed. @throws Error if there is none */
export function usageOf(name: string): Usage {
  const usage = allCommands.find((known) => known.name === name);
  if (usage === undefined) throw new Error(`no command ${name}`);
  return usage;
}
