import { sleep } from '#src/kernel/async/sleep.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { handleProfileCommand } from '#src/commands/session-profile.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { OpenProfiles } from '#src/roles/provisioner/profiles.ts';
import { createSession } from '#test/support/examples.ts';

const organizationId = 'acme';

/** Creates a session that saves a new profile. @returns the session's id */
export async function createSaving(context: CommandContext): Promise<string> {
  const [id, profileId] = [newId('ses'), newId('prf')];
  const now = context.now();
  const create = { type: 'CreateProfile', name: 'shop', by: 'user_1', now } as const;
  const metadata = newMetadata('test');
  const none = async () => 0;
  await handleProfileCommand(context, organizationId, profileId, create, metadata, none);
  const handled = await handleSessionCommand(
    context,
    { organizationId, id },
    createSession({ now, browser: { viewport: null, locale: null, timezone: null } }),
    metadata,
    { concurrentSessions: 1_000 },
    { id: profileId, version: null, save: true },
  );
  if (isRejection(handled)) throw new Error(handled.code);
  return id;
}

/** Profiles whose saves on request take that long and store nothing. At an end none is saved. */
export function profilesThatTake(ms: number): OpenProfiles {
  return ({ browsers, reporter }) => ({
    launch: (spec) => browsers.launch(spec),
    saveAtEnd: () => Promise.resolve(),
    async saveNow({ session }, metadata) {
      await sleep(ms);
      if (session === null) throw new Error('a browser without a session is saved');
      const outcome = { version: 1, bytes: 1_024 };
      const report = { type: 'ReportProfile', outcome, atEnd: false } as const;
      await reporter.session(session, report, metadata);
    },
  });
}
