import { userInfo } from 'node:os';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import {
  asKey,
  bss,
  create,
  json,
  newKey,
  newOrganization,
  tailing,
  untilAnswered,
} from '#test/support/clients/command-line.ts';

let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the history of a session', () => {
  it('shows each event with its actor, cause and the state after it', async () => {
    const organization = await newOrganization(service, '--tier', 'free');
    const { api_key } = await newKey(service, organization, 'member');
    await untilAnswered(service, api_key, 200);
    const { id } = (await create(service, api_key)).body as { id: string };
    await asKey(service, api_key, 'DELETE', `/api/sessions/${id}`);
    const events = await eventually(async () => {
      const history = (await json(service, 'session', 'history', id)) as HistoryItem[];
      return history.at(-1)?.state.status === 'stopped' && history;
    }, 'the session has ended');

    expect(events.map(({ type, state }) => [type, state.status])).toEqual([
      ['session.requested', 'creating'],
      ['session.activated', 'active'],
      ['session.stop-requested', 'stopping'],
      ['session.stopped', 'stopped'],
    ]);
    const [requested, activated, asked] = events;
    expect(requested).toMatchObject({
      sequence: expect.any(Number),
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      actor: { kind: 'user', id: 'ann' },
      cause: { commandId: expect.any(String), causationId: null },
      data: { creditsReserved: 30 },
      state: { organizationId: organization, creditsReserved: 30 },
    });
    expect(activated?.cause.correlationId).toBe(requested?.cause.correlationId);

    const { stdout } = await bss(service, 'session', 'history', id);
    expect(stdout).toMatch(/session\.activated +active +service:\S+ +session\.requested \(\d+\)/);
    expect(stdout).toContain(`session.stop-requested (${asked?.sequence})`);
    expect(stdout).toMatch(/\+\d+(ms|\.\ds) /);
    expect(stdout).toContain('status: "stopping" → "stopped"');
  });

  it('names an event that cannot be read, and exits with 1', async () => {
    const { host: servers, username: user, password: pass } = new URL(service.runtime.nats_url);
    const nats = await connect({ servers, user, pass });
    nats.publish('evt.org_garbled.session.garbled.accessed', 'no event');
    await nats.drain();
    const { code, stdout, stderr } = await eventually(async () => {
      const history = await bss(service, 'session', 'history', 'garbled', '--json');
      return !history.stderr.includes('SESSION_NOT_FOUND') && history;
    }, 'the garbled event is in the log');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '[]\n' });
    expect(stderr).toContain('evt.org_garbled.session.garbled.accessed) cannot be read');
  });
});

describe('bss events tail', () => {
  it('prints events as they happen, one CloudEvent per line', async () => {
    const organization = await newOrganization(service, '--tier', 'free');
    using tail = tailing(service, '--org', organization, '--from', 'start', '--json');
    const registered = await tail.next();
    const created = (await tail.next(), await newKey(service, organization, 'owner'));
    const issued = await tail.next();
    const user = userInfo().username;
    expect(JSON.parse(registered)).toEqual({
      specversion: '1.0',
      id: expect.stringMatching(/^evt_/),
      type: 'organization.registered',
      source: '/browser-session-service',
      subject: organization,
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      datacontenttype: 'application/json',
      dataschema: 'urn:bss:event:organization.registered:1',
      sequence: expect.any(Number),
      actor: `operator:${encodeURIComponent(user)}`,
      correlationid: expect.any(String),
      causationid: null,
      data: { name: 'Acme', tier: 'free' },
      state: { id: organization, name: 'Acme', tier: 'free', keys: [] },
    });
    expect(JSON.parse(issued)).toMatchObject({
      type: 'organization.key-issued',
      data: { keyId: created.key_id, role: 'owner' },
    });
    const { sequence } = JSON.parse(issued) as { sequence: number };
    expect(await json(service, 'events', 'show', `${sequence}`)).toEqual(JSON.parse(issued));
  });

  it('begins with new events', async () => {
    using tail = tailing(service, '--type', 'organization.registered', '--json');
    const names = new Set<string>();
    const first = tail.next();
    const received = eventually(async () => {
      const name = `n${names.size}`;
      names.add(name);
      await newOrganization(service, '--tier', 'free', '--name', name);
      return Promise.race([first, Promise.resolve(false as const)]);
    }, 'the tail tells of a new organization');
    const event = JSON.parse(await received) as { data: { name: string } };
    expect(names).toContain(event.data.name);
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('ends cleanly at %s', async (signal) => {
    using tail = tailing(service, '--org', 'dev', '--from', 'start');
    expect(await tail.next()).toContain('organization.registered');
    tail.child.kill(signal);
    expect(await tail.ended).toEqual([0, null]);
  });

  it('ends cleanly when its reader closes the pipe', async () => {
    using tail = tailing(service, '--org', 'dev', '--from', 'start');
    await tail.next();
    tail.child.stdout.destroy();
    await json(service, 'credits', 'grant', '--org', 'dev', '--amount', '1');
    expect(await tail.ended).toEqual([0, null]);
    expect(tail.errors()).toBe('');
  });
});

type HistoryItem = {
  sequence: number;
  type: string;
  cause: { correlationId: string };
  state: { status: string };
};
