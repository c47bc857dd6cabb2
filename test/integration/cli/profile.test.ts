import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from '#src/apps/cli/errors.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { recordSavedProfile } from '#src/commands/session-profile.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { readApiCommand, runApiCommand } from '#test/support/clients/api-command.ts';
import { json, refuse, startScripted } from '#test/support/clients/scripted-service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';

/** `bss profile` on the API, with simulated browsers and everything in this process's memory. */

const VERSION = '150.0.7871.100';

let app: Awaited<ReturnType<typeof startApp>>;
let url: string;
beforeAll(async () => {
  app = await startApp();
  url = await app.listen();
});
afterAll(() => app?.[Symbol.asyncDispose]());
beforeEach(() => {
  vi.stubEnv('BSS_API_KEY', 'member/bea');
  return () => vi.unstubAllEnvs();
});

const read = (words: string, operands: readonly string[], address = url) =>
  readApiCommand(`profile ${words}`, operands, address);
const profile = (words: string, ...operands: readonly string[]) =>
  runApiCommand(`profile ${words}`, operands, url);
async function createProfile(name = 'shop log-in'): Promise<string> {
  const { json } = await profile('create', name);
  return json?.['id'] ?? expect.unreachable('it was refused');
}
async function createSession(asked?: object): Promise<string> {
  const body = asked === undefined ? {} : { profile: asked };
  const made = await app.request('POST', '/api/sessions', body);
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  return made.body.id;
}
async function stop(id: string): Promise<void> {
  await app.request('DELETE', `/api/sessions/${id}`);
  await eventually(async () => {
    return (await app.request('GET', `/api/sessions/${id}`)).body.status === 'stopped';
  }, 'the session has stopped');
}
const listed = async () => (await profile('list')).json as unknown as { id: string }[];
/** The lines of the text, without the spaces that align its columns. */
const linesOf = ({ text = '' }: { text?: string }) =>
  text.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, '  '));

describe('bss profile', () => {
  it('creates, lists, shows and removes a profile', async () => {
    const made = await profile('create', 'checkout');
    const id: string = made.json?.['id'] ?? '';
    expect(made.text).toBe(`${id}: checkout, an empty profile`);
    const { body } = await app.request('GET', `/api/profiles/${id}`);
    expect(made.json).toEqual(body);
    const all = await profile('list');
    expect(linesOf(all)[0]).toBe('PROFILE  NAME  VERSION  CREATED  BY  SAVED BY SESSION');
    expect(linesOf(all)[1]).toBe(`${id}  checkout  –  ${body.created_at}  bea  –`);
    const shown = await profile('show', id);
    expect(shown.json).toEqual(body);
    expect(linesOf(shown)).toEqual([
      `${id}: checkout, created ${body.created_at} by bea`,
      ...['', 'no version of it is saved yet'],
    ]);
    const removed = await profile('remove', id);
    expect(removed).toEqual({
      json: { profile_id: id },
      text: `profile ${id} is removed, with all its versions`,
    });
    expect((await listed()).map((one) => one.id)).not.toContain(id);
    for (const words of ['show', 'remove'])
      expect(await profile(words, id)).toMatchObject({ refusal: 'PROFILE_NOT_FOUND' });
  });

  it('saves the profile of a session that goes on, which is listed with it until its end', async () => {
    const id = await createProfile();
    const session = await createSession({ id, save: true });
    const saved = await profile('save', session);
    expect(saved).toEqual({
      json: { session_id: session, profile_id: id, version: 1, bytes: expect.any(Number) },
      text: expect.stringMatching(`^version 1 of profile ${id} is saved, \\d+ bytes$`),
    });
    expect(await listed()).toContainEqual(
      expect.objectContaining({ id, latest_version: 1, saving_session_id: session }),
    );
    const refused = await profile('remove', id);
    expect(refused).toEqual({
      refusal: 'PROFILE_IN_USE',
      message: expect.stringContaining(`(profile_id: ${id}, session_id: ${session})`),
    });
    expect(linesOf(await profile('show', id))[1]).toBe(`session ${session} is open and saves it`);
    await stop(session);
    expect(await listed()).toContainEqual(
      expect.objectContaining({ id, latest_version: 2, saving_session_id: null }),
    );
    expect(linesOf(await profile('show', id))[1]).toBe('');
  });

  it('shows versions, newest first, and what each holds by name', async () => {
    const id = await createProfile();
    const session = await createSession({ id, save: true });
    const nothing = { origins: [], cookies: [] };
    const names = ['session', 'forged\u001b[2J\n9  cookie'];
    const much = {
      origins: ['https://shop.example.com', 'http://127.0.0.1:8000'],
      cookies: [
        ...names.map((name) => ({ domain: '.shop.example.com', name })),
        { domain: '127.0.0.1', name: 'as' },
      ],
      isCut: true,
    };
    for (const [count, contents] of [nothing, much].entries()) {
      const archive = { sha256: String(count).repeat(64), bytes: 4_718_592, browser: VERSION };
      const recorded = await recordSavedProfile(
        app.context,
        { organizationId: 'acme', id: session },
        { profileId: id, archive: { ...archive, contents }, kept: 3, atEnd: false },
        newMetadata('test'),
      );
      expect(isRejection(recorded)).toBe(false);
    }
    const shown = await profile('show', id);
    const versions: { saved_at: string }[] = shown.json?.['versions'] ?? [];
    const [second, first] = versions.map((one) => one.saved_at);
    expect(linesOf(shown).slice(2)).toEqual([
      '',
      'VERSION  SAVED  BYTES  SESSION  BROWSER',
      `2  ${second}  4718592  ${session}  ${VERSION}`,
      'data of https://shop.example.com, http://127.0.0.1:8000',
      String.raw`cookies of .shop.example.com: session, forged\u{1b}[2J\u{a}9  cookie`,
      'cookies of 127.0.0.1: as',
      'and more, which is not listed',
      `1  ${first}  4718592  ${session}  ${VERSION}`,
    ]);
    await stop(session);
  });

  it('tells why a profile is not saved', async () => {
    const session = await createSession();
    expect(await profile('save', session)).toMatchObject({ refusal: 'PROFILE_READ_ONLY' });
    await stop(session);
    expect(await profile('save', session)).toMatchObject({ refusal: 'SESSION_NOT_ACTIVE' });
    expect(await profile('save', 'ses_none')).toMatchObject({ refusal: 'SESSION_NOT_FOUND' });
    const context = { reason: 'storage', detail: 'it could not be read or stored' };
    await using service = await startScripted([refuse(503, 'PROFILE_NOT_SAVED', {}, context)]);
    expect(await (await read('save', ['ses_1'], service.url))()).toMatchObject({
      code: 'PROFILE_NOT_SAVED',
      message: 'PROFILE_NOT_SAVED: No. (reason: storage, detail: it could not be read or stored)',
    });
    expect(service.asked.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      'POST /api/sessions/ses_1/profile/save',
    ]);
  });

  it('lists more profiles than the API tells at once', async () => {
    const page = (names: readonly string[]) => {
      const one = { created_at: 'T', created_by: 'bea', latest_version: 1 };
      const profiles = names.map((name) => ({ ...one, id: name, name, saving_session_id: null }));
      return json(200, { profiles, total: 3 });
    };
    await using service = await startScripted([page(['a', 'b']), page(['c'])]);
    const all = await (await read('list', [], service.url))();
    expect(all).toMatchObject({ json: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] });
    expect(service.asked.map(({ url: path }) => path)).toEqual([
      ...['/api/profiles?limit=100&offset=0', '/api/profiles?limit=100&offset=2'],
    ]);
  });

  it('is of the key: a viewer reads, and another organization finds nothing', async () => {
    const id = await createProfile();
    const session = await createSession({ id, save: true });
    vi.stubEnv('BSS_API_KEY', 'viewer/vic');
    expect((await profile('show', id)).json).toMatchObject({ id });
    for (const [words, operand] of [
      ['create', 'x'],
      ['save', session],
      ['remove', id],
    ] as const)
      expect(await profile(words, operand)).toMatchObject({ refusal: 'FORBIDDEN' });
    await app.registerOther();
    vi.stubEnv('BSS_API_KEY', 'other');
    expect(await profile('show', id)).toMatchObject({ refusal: 'PROFILE_NOT_FOUND' });
    expect(await profile('list')).toMatchObject({ json: [] });
    vi.stubEnv('BSS_API_KEY', '');
    expect(await profile('list')).toMatchObject({ refusal: 'UNAUTHORIZED' });
    await stop(session);
  });

  it('refuses a wrong command line', async () => {
    for (const [words, ...operands] of [
      ['list', 'prf_1'],
      ['show'],
      ['show', '../x'],
      ['create', ' '],
      ['create', 'n'.repeat(129)],
      ['save', 'a/b'],
      ['remove', 'prf_1', 'prf_2'],
    ] as const)
      await expect(read(words, operands)).rejects.toThrow(UsageError);
  });
});
