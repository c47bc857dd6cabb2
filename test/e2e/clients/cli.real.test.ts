import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { UsageError } from '#src/apps/cli/errors.ts';
import { helpOnAll } from '#src/apps/cli/help.ts';
import { allCommands } from '#src/apps/cli/usage/all.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { runHere } from '#test/support/clients/command-here.ts';
import {
  bss,
  bssOfCheckout,
  bssWith,
  create,
  json,
  newKey,
  newOrganization,
  npxBss,
  untilAnswered,
} from '#test/support/clients/command-line.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import type { Service } from '#test/support/service/service.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';
import { textFiles } from '#test/support/sources/source-files.ts';

/**
 * `bss` on a whole service. Each way of a command to its end has a process of its own; the other
 * commands run in this one.
 */

let shared: SharedService;
let service: Service;
beforeAll(async () => {
  shared = await shareService();
  ({ service } = shared);
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe('an operator', () => {
  it('creates an organization, whose key works at once and until it is revoked', async () => {
    const organization = await newOrganization(service, '--tier', 'pro');
    const { key_id, api_key } = await newKey(service, organization, 'member');
    expect(api_key).toMatch(new RegExp(`^bss_${organization}_.{32}$`));
    await untilAnswered(service, api_key, 200);

    const revoked = await json(service, 'keys', 'revoke', '--key', key_id);
    expect(revoked).toEqual({ key_id, organization_id: organization });
    await untilAnswered(service, api_key, 401);
    const again = await bss(service, 'keys', 'revoke', '--key', key_id, '--json');
    expect(again.code).toBe(1);
    expect(JSON.parse(again.stderr)).toEqual({ error: 'NOT_FOUND', message: 'No such live key.' });
  });

  it('lists organizations and live keys, but never shows a key again', async () => {
    const name = 'Ann\u202e & sons';
    const organization = await newOrganization(service, '--tier', 'free', '--name', name);
    const { key_id, api_key } = await newKey(service, organization, 'admin');
    expect(await json(service, 'orgs', 'list')).toContainEqual({
      organization_id: organization,
      name,
      tier: 'free',
      live_keys: 1,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(await json(service, 'keys', 'list', '--org', organization)).toEqual([
      { key_id, role: 'admin', user_id: 'ann', issued_at: expect.stringMatching(/^20.*Z$/) },
    ]);
    const { text } = await here('orgs', 'list');
    expect(text).toContain('Ann\\u{202e} & sons');
    const log = await bss(
      service,
      'events',
      'tail',
      '--org',
      organization,
      '--from',
      '1',
      '--limit',
      '3',
    );
    expect(text + log.stdout).not.toContain(api_key.slice(-32));
  });

  it('issues a viewer key that may read but not write', async () => {
    const organization = await newOrganization(service, '--tier', 'free');
    const { api_key } = await newKey(service, organization, 'viewer');
    await untilAnswered(service, api_key, 200);
    expect((await create(service, api_key)).status).toBe(403);
  });

  it('sets and grants credits, which sessions use', async () => {
    const organization = await newOrganization(service, '--tier', 'free', '--credits', '7');
    expect(await json(service, 'credits', 'show', '--org', organization)).toEqual({
      organization_id: organization,
      credits_granted: 7,
      credits_available: 7,
      credits_reserved: 0,
      credits_used: 0,
      slots_in_use: 0,
    });
    const granted = await json(
      service,
      'credits',
      'grant',
      '--org',
      organization,
      '--amount',
      '40',
    );
    expect(granted).toMatchObject({ credits_granted: 47, credits_available: 47 });
    const { api_key } = await newKey(service, organization, 'member');
    await untilAnswered(service, api_key, 200);
    expect((await create(service, api_key)).status).toBe(201);
    const after = await json(service, 'credits', 'show', '--org', organization);
    expect(after).toMatchObject({ credits_available: 17, credits_reserved: 30, slots_in_use: 1 });
  });

  it('creates an organization with the credits of its tier in TIERS', async () => {
    const free = await newOrganization(service, '--tier', 'free');
    expect(await json(service, 'credits', 'show', '--org', free)).toMatchObject({
      credits_granted: 600,
    });
    const env = { TIERS: '{"free":{"credits":11}}', DATA_DIR: service.dataDir };
    const created = await runHere(env, 'orgs', 'create', '--name', 'N', '--tier', 'free');
    if (isRejection(created)) throw new Error(created.code);
    const { organization_id } = created.json as { organization_id: string };
    expect(await json(service, 'credits', 'show', '--org', organization_id)).toMatchObject({
      credits_available: 11,
    });
  });
});

it('a user keeps profiles, with an API key in place of the operator’s access', async () => {
  const organization = await newOrganization(service, '--tier', 'free');
  const { api_key } = await newKey(service, organization, 'member');
  await untilAnswered(service, api_key, 200);
  const profile = async (...args: string[]) => {
    const env = { DATA_DIR: service.dataDir, BSS_API_KEY: api_key };
    return bssWith(env, 'profile', ...args, '--json');
  };
  const created = await profile('create', 'shop log-in');
  const { id } = JSON.parse(created.stdout) as { id: string };
  expect(JSON.parse(created.stdout)).toMatchObject({ name: 'shop log-in', created_by: 'ann' });
  expect(await profile('remove', id)).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `{"profile_id":"${id}"}\n`,
  });
  const gone = await profile('show', id);
  expect([gone.code, gone.stdout]).toEqual([1, '']);
  expect(JSON.parse(gone.stderr)).toEqual({
    error: 'PROFILE_NOT_FOUND',
    message: expect.stringContaining(`(profile_id: ${id})`),
  });
});

describe('the command line', () => {
  const NONE = ['--org', 'none'];
  test.each<[args: string[], code: number]>([
    [[], 2],
    [['orgs'], 2],
    [['orgs', 'list', '--fast'], 2],
    [['credits', 'show', ...NONE], 1],
  ])('%j exits with %i and a message', async (args, code) => {
    const answer = await bss(service, ...args, '--json');
    expect({ code: answer.code, stdout: answer.stdout }).toEqual({ code, stdout: '' });
    expect(JSON.parse(answer.stderr)).toEqual({
      error: expect.stringMatching(/^[A-Z_]+$/),
      message: expect.stringMatching(/.{10}/),
    });
  });

  test.each([
    [['orgs', 'create', '--name', 'N']],
    [['orgs', 'create', '--name', 'N', '--tier', 'gold']],
    [['orgs', 'create', '--name', 'N', '--tier', 'free', '--credits', '-1']],
    [['session', 'history']],
    [['session', 'history', 'a.b']],
    [['keys', 'list', '--org', '*']],
    [['credits', 'grant', '--org', 'dev', '--amount', '0']],
    [['events', 'tail', '--type', 'session.slept']],
    [['events', 'tail', '--org', 'dev', '--type', 'workload.idle']],
  ])('%j is not understood', async (args) => {
    await expect(here(...args)).rejects.toThrow(UsageError);
  });

  test.each([
    [['session', 'history', 'ses_none']],
    [['keys', 'issue', ...NONE, '--role', 'member', '--user', 'u']],
    [['keys', 'revoke', '--key', 'key_none']],
    [['credits', 'grant', ...NONE, '--amount', '5']],
    [['events', 'show', '999999999']],
  ])('%j is refused', async (args) => {
    const refusal = await runHere({ DATA_DIR: service.dataDir }, ...args);
    expect(refusal).toMatchObject({ code: expect.stringMatching(/NOT_FOUND$/) });
  });

  it('does not print an API key that was typed in the wrong place', async () => {
    const key = 'bss_org_a-key-that-must-not-be-printed';
    for (const args of [
      ['keys', 'revoke', '--key', key],
      ['orgs', 'list', key],
    ])
      expect((await bss(service, ...args)).stderr).not.toContain('must-not-be-printed');
  });

  it('prints help', async () => {
    const all = await bss(service, '--help');
    expect([all.code, all.stderr]).toEqual([0, '']);
    const names = all.stdout.matchAll(/^ {2}bss (\w+ \w+) /gm).map(([, name = '']) => name);
    const commands = [...names];
    expect(commands).toContain('session history');
    const one = await bss(service, ...(commands[0] ?? '').split(' '), '--help');
    expect([one.code, one.stdout.split('\n')[0]]).toEqual([0, 'usage: bss orgs create [OPTIONS]']);
  });

  it('has every command that a document names', async () => {
    const names = new Set(
      helpOnAll(allCommands)
        .matchAll(/^ {2}bss ([\w-]+(?: \w+)?) {2}/gm)
        .map(([, name]) => name),
    );
    expect([...names]).toEqual(expect.arrayContaining(['why', 'session history']));
    const named = textFiles()
      .filter(({ path }) => path.endsWith('.md'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/\bbss ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+))?/g)].map(
          ([, first = '', second = '']) => {
            return { path, first, both: `${first} ${second}` };
          },
        ),
      );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter(({ first, both }) => !names.has(first) && !names.has(both))).toEqual([]);
  });

  it('is the file bss of a checkout, and the program of the package', async () => {
    const checkout = await bssOfCheckout({ DATA_DIR: service.dataDir }, 'orgs', 'list', '--json');
    const npx = await npxBss(service, 'orgs', 'list', '--json');
    for (const { code, stdout } of [checkout, npx]) {
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ name: 'Development' }));
    }
  });
});

/** The output of a command that is not refused. */
async function here(...args: string[]) {
  const outcome = await runHere({ DATA_DIR: service.dataDir }, ...args);
  if (isRejection(outcome)) throw new Error(JSON.stringify(outcome));
  return outcome;
}

describe('where no service runs', () => {
  it('bss reports why: none has run, it was killed, or NATS_URL does not answer', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'bss-test-'));
    const never = runHere({ DATA_DIR: dataDir }, 'orgs', 'list');
    await expect(never).rejects.toThrow('no service runs on');

    const ended = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(ended, 'exit');
    const runtime = JSON.stringify({ ...service.runtime, pid: ended.pid });
    await writeFile(join(dataDir, 'runtime.json'), runtime);
    const killed = await bssWith({ DATA_DIR: dataDir }, 'orgs', 'list');
    expect(killed).toMatchObject({ code: 1, stderr: expect.stringContaining('is gone') });

    const env = { DATA_DIR: dataDir, NATS_URL: 'nats://127.0.0.1:1' };
    const elsewhere = await bssWith(env, 'orgs', 'list', '--json');
    expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('UNAVAILABLE') });
    await rm(dataDir, { recursive: true });
  });

  it('only bss orgs create creates missing streams', async () => {
    await using nats = await startNats();
    const env = { DATA_DIR: '/nowhere', NATS_URL: nats.url };
    const message = /the event store at .+ has no streams/;
    await expect(runHere(env, 'orgs', 'list')).rejects.toThrow(message);
    await expect(runHere(env, 'events', 'tail')).rejects.toThrow(message);
    const streams = async () => {
      const nc = await connect({ servers: nats.url.replace('nats://', '') });
      const found = await (await jetstreamManager(nc)).streams.list().next();
      await nc.close();
      return found.map(({ config }) => config.name).toSorted();
    };
    expect(await streams()).toEqual([]);
    const created = await runHere(env, 'orgs', 'create', '--name', 'N', '--tier', 'pro');
    expect(isRejection(created)).toBe(false);
    expect(await streams()).toEqual([
      'ADVISORY',
      'DEAD_LETTERS',
      'DELIVERIES',
      'EVENTS',
      'OBJECTS',
      'PUBLIC',
      'TIMERS',
      'WEBHOOKS',
    ]);
  });

  it('bss uses the event store at NATS_URL', async () => {
    const env = { DATA_DIR: '/nowhere', NATS_URL: service.runtime.nats_url };
    expect(await runHere(env, 'orgs', 'list')).toMatchObject({ json: expect.any(Array) });
  });
});
