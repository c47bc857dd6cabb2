import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { bss, bssWith, json } from '#test/support/clients/command-line.ts';

type Step = { sequence: number; type: string; time: string; state: { status: string } };

let service: RunningService;
/** A session that has ended, and a moment at which it was active. */
let session: { id: string; activeAt: string };
beforeAll(async () => {
  // A busy machine queues no session: that would be one more event of its history.
  service = await startService({ QUEUE_AFTER: '1h' });
  const created = await service.request('POST', '/api/sessions', { duration: '30m' });
  const path = `/api/sessions/${created.body.id}`;
  await service.request('GET', `${path}/access`);
  const activeAt = new Date().toISOString();
  await eventually(() => new Date().toISOString() > activeAt, 'the millisecond is over');
  await service.request('POST', `${path}/extend`, { duration: '1h' });
  await service.request('DELETE', path);
  const isStopped = async () => (await service.request('GET', path)).body.status === 'stopped';
  await eventually(isStopped, 'it has stopped');
  session = { id: created.body.id, activeAt };
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the history of a session', () => {
  it('is shown with the changes and the delay of each event', async () => {
    const { id } = session;
    const steps = (await json(service, 'session', 'history', id)) as Step[];
    expect(steps.map(({ type }) => type)).toEqual([
      'session.requested',
      'session.activated',
      'session.accessed',
      'session.extended',
      'session.stop-requested',
      'session.stopped',
    ]);
    expect(steps[1]).toMatchObject({
      type: 'session.activated',
      state: { status: 'active' },
      actor: { kind: 'service', id: 'provisioner' },
      cause: { causationId: expect.stringMatching(/^evt_/) },
      causedBy: { sequence: steps[0]?.sequence, type: 'session.requested' },
      sincePreviousMs: expect.any(Number),
    });
    expect(steps[1]).toHaveProperty(
      'changes',
      expect.arrayContaining([{ field: 'status', from: 'creating', to: 'active' }]),
    );
    const { stdout } = await bss(service, 'session', 'history', id);
    expect(stdout).toMatch(/session\.extended +active +user:dev/);
    expect(stdout).toMatch(/\nin total creating \S+, active \S+, stopping \S+\n$/);
  });

  it('is shown at a time and at a sequence', async () => {
    const { id, activeAt } = session;
    const steps = (await json(service, 'session', 'history', id)) as Step[];
    const accessed = steps[2];
    expect(await json(service, 'session', 'at', id, '--time', activeAt)).toMatchObject({
      sequence: accessed?.sequence,
      state: accessed?.state,
    });
    const before = String((accessed?.sequence ?? 0) - 1);
    expect(await json(service, 'session', 'at', id, '--seq', before)).toMatchObject({
      type: 'session.activated',
    });
    const early = await bss(service, 'session', 'at', id, '--seq', '1');
    expect(early).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('It began later'),
    });
    const late = await bss(service, 'session', 'at', id, '--time', '2999-01-01T00:00:00Z');
    expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('in the future') });
    expect((await bss(service, 'session', 'at', id)).code).toBe(2);
  });

  it('is explained by bss why, with browser, ledger and timers', async () => {
    const { stdout, code } = await bss(service, 'why', session.id);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Session \S+ of organization dev stopped \(user\) at /);
    expect(stdout).toMatch(/\n  because a user requested its stop — event \d+, .* user:dev/);
    for (const words of [/browser wl_\S+ was ready/, /a slot and 30 credits were reserved/])
      expect(stdout).toMatch(words);
    const why = await json(service, 'why', session.id);
    expect(why).toMatchObject({ status: 'stopped', ended_reason: 'user', chain: [{}, {}] });
    expect((await bss(service, 'why', 'ses_none')).code).toBe(1);
  });
});

describe('an audit', () => {
  const file = () => join(service.dataDir, 'audit.ndjson');

  it('is exported from the event store, and verified offline', async () => {
    const exported = await json(service, 'audit', 'export', '--out', file());
    const { public_key, fingerprint } = (await json(service, 'audit', 'key')) as {
      public_key: { crv: string };
      fingerprint: string;
    };
    expect(exported).toMatchObject({ fingerprint });
    expect(public_key.crv).toBe('Ed25519');
    const env = { DATA_DIR: '/nowhere', NATS_URL: 'nats://127.0.0.1:1' };
    const offline = await bssWith(env, 'audit', 'verify', file(), '--key', fingerprint);
    expect(offline).toMatchObject({ code: 0, stdout: expect.stringContaining('WHOLE: ') });
    const foreign = await bssWith(env, 'audit', 'verify', file(), '--key', 'another');
    expect(foreign).toMatchObject({ code: 1, stdout: expect.stringContaining('signed by') });
    expect(await json(service, 'audit', 'verify', file(), '--against-log')).toMatchObject({
      whole: true,
    });

    const copy = `${file()}.dev`;
    await json(service, 'audit', 'export', '--org', 'dev', '--out', copy);
    expect(await json(service, 'audit', 'verify', copy, '--against-log')).toMatchObject({
      head: { organization: 'dev' },
    });
  });

  it('of a span contains the records of that span', async () => {
    const { activeAt } = session;
    const early = { from: '2020-01-01', to: activeAt };
    const span = ['--from', early.from, '--to', early.to, '--org', 'dev', '--out', file()];
    await json(service, 'audit', 'export', ...span);
    const types = async () => {
      const [, ...lines] = (await readFile(file(), 'utf8')).trimEnd().split('\n');
      return lines.map((line) => JSON.parse(line).record.subject.split('.').at(-1) as string);
    };
    expect((await types()).at(-1)).toBe('accessed');
    await json(service, 'audit', 'export', '--from', activeAt, '--org', 'dev', '--out', file());
    expect((await types())[0]).toBe('extended');
  });

  it('that was altered, or that is of another event store, is refused', async () => {
    await json(service, 'audit', 'export', '--out', file());
    const text = await readFile(file(), 'utf8');
    const lines = text.split('\n');
    await writeFile(file(), lines.toSpliced(4, 1).join('\n'));
    const removed = await bss(service, 'audit', 'verify', file(), '--json');
    expect(removed.code).toBe(1);
    expect(JSON.parse(removed.stdout)).toMatchObject({ whole: false, line: 5 });

    // An export of another event store that is signed by the same key.
    await writeFile(file(), text);
    await using other = await startService();
    await rm(join(other.dataDir, 'audit-key'), { force: true });
    await writeFile(
      join(other.dataDir, 'audit-key'),
      await readFile(join(service.dataDir, 'audit-key')),
    );
    const strange = await bss(other, 'audit', 'verify', file(), '--against-log');
    expect(strange).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('another event store'),
    });
    expect((await bss(service, 'audit', 'verify', '/nowhere')).code).toBe(2);
  });
});

it('rebuilt read models are equal to those of the event store', async () => {
  const rebuilt = await json(service, 'projections', 'rebuild', 'session-view');
  expect(rebuilt).toMatchObject([{ events: expect.any(Number), dead_letters: 0 }]);
  const [{ events }] = rebuilt as [{ events: number }];
  expect(events).toBeGreaterThan(3);
  expect((await bss(service, 'projections', 'verify')).code).toBe(0);
});
