import type { Profile, Profiles, ProfileSummary } from '#src/apps/client/client.ts';
import { parseId, textUpTo } from '../arguments.ts';
import { byApi } from '../by-api.ts';
import type { Command } from '../command.ts';
import { formatTable, printable } from '../output.ts';

const NAME_LENGTH_MAX = 128;
/** As many as the API tells at once; an organization has hardly more. */
const PAGE = 100;

export const listProfiles: Command = byApi(() => async ({ profiles }) => {
  const all = await readAll(profiles);
  const rows = all.map((profile) => {
    const { id, name, latest_version: latest, saving_session_id: saving } = profile;
    const version = latest === null ? '–' : String(latest);
    return [id, name, version, profile.created_at, profile.created_by, saving ?? '–'];
  });
  const heads = ['PROFILE', 'NAME', 'VERSION', 'CREATED', 'BY', 'SAVED BY SESSION'];
  return { json: all, text: formatTable(heads, rows).join('\n') };
});

/** Newest first. Ends with the first page that tells nothing new. */
async function readAll(profiles: Profiles): Promise<ProfileSummary[]> {
  const all: ProfileSummary[] = [];
  for (;;) {
    const page = await profiles.list({ limit: PAGE, offset: all.length });
    all.push(...page.profiles);
    if (page.profiles.length === 0 || all.length >= page.total) return all;
  }
}

export const showProfile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  return async ({ profiles }) => {
    const profile = await profiles.get(id);
    const { name, created_at: at, created_by: by, saving_session_id: saving } = profile;
    const text = [
      printable(`${profile.id}: ${name}, created ${at} by ${by}`),
      ...(saving === null ? [] : [`session ${saving} is open and saves it`]),
      '',
      ...describeVersions(profile.versions),
    ];
    return { json: profile, text: text.join('\n') };
  };
});

type Version = Profile['versions'][number];

/** A row for each version; what it holds follows it, by names that pages chose. */
function describeVersions(versions: readonly Version[]): readonly string[] {
  if (versions.length === 0) return ['no version of it is saved yet'];
  const rows = versions.map((one) => {
    const { version, saved_at: at, bytes, session_id: session, browser_version: browser } = one;
    return [String(version), at, String(bytes), session, browser];
  });
  const heads = ['VERSION', 'SAVED', 'BYTES', 'SESSION', 'BROWSER'];
  const [head = '', ...lines] = formatTable(heads, rows);
  const below = versions.map((version) => contentsOf(version).map((line) => `      ${line}`));
  return [head, ...lines.flatMap((line, index) => [line, ...(below[index] ?? [])])];
}

/** A line for all origins and one for the cookies of each domain. */
function contentsOf({ origins, cookies, is_cut: isCut }: Version): readonly string[] {
  const byDomain = Map.groupBy(cookies, ({ domain }) => domain);
  const lines = [
    ...(origins.length === 0 ? [] : [`data of ${origins.join(', ')}`]),
    ...[...byDomain].map(([domain, its]) => {
      return `cookies of ${domain}: ${its.map(({ name }) => name).join(', ')}`;
    }),
    ...(isCut ? ['and more, which is not listed'] : []),
  ];
  return lines.map(printable);
}

export const createProfile: Command = byApi((options) => {
  const name = options.operand(0, textUpTo(NAME_LENGTH_MAX));
  return async ({ profiles }) => {
    const profile = await profiles.create({ name });
    return { json: profile, text: printable(`${profile.id}: ${profile.name}, an empty profile`) };
  };
});

export const saveProfile: Command = byApi((options) => {
  const sessionId = options.operand(0, parseId);
  return async ({ profiles }) => {
    const saved = await profiles.save(sessionId);
    const { profile_id: id, version, bytes } = saved;
    return { json: saved, text: `version ${version} of profile ${id} is saved, ${bytes} bytes` };
  };
});

export const removeProfile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  return async ({ profiles }) => {
    await profiles.remove(id);
    return { json: { profile_id: id }, text: `profile ${id} is removed, with all its versions` };
  };
});
