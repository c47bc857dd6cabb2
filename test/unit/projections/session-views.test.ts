import { describe, expect, test } from 'vitest';
import {
  organizationSessions,
  sessionLists,
  sessionsWithLabel,
} from '#projections/organization-sessions.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import {
  accessed,
  activated,
  assigned,
  carriedForward,
  extended,
  failed,
  HOUR,
  iso,
  MINUTE,
  queued,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';
import { sessionRef, viewAfter } from '#test/support/history.ts';

const session = sessionRef();

describe('the session view', () => {
  test('is the state in the last event, keyed by organization and session', async () => {
    const happened = [requested(), assigned(), activated(T0 + 500)] as const;
    const { key, view, order } = await viewAfter(sessionView, session, ...happened);
    expect(key).toBe('org_acme/ses_1');
    expect(view).toMatchObject({
      status: 'active',
      startedAt: iso(T0 + 500),
      workload: { workloadId: 'wl_1' },
    });
    expect(order).toBe(T0);
  });

  test('is listed under its server from assignment to its end', async () => {
    const lives = [
      [requested()],
      [requested(), assigned('wl_1', 'srv_2')],
      [requested(), activated()],
      [requested(), activated(), stopRequested()],
      [requested(), activated(), stopRequested(), stopped(T0 + MINUTE, 1)],
      [requested(), activated(), failed({ reason: 'browser_crashed' })],
    ] as const;
    const lists = lives.map(async (life) => (await viewAfter(sessionView, session, ...life)).lists);
    const onServer = ['server/srv_1'];
    expect(await Promise.all(lists)).toEqual([[], ['server/srv_2'], onServer, onServer, [], []]);
  });

  test('and its row are the same after the state was carried forward', async () => {
    const lives = [[requested()], [requested(), activated()], [requested(), stopRequested()]];
    for (const life of lives)
      for (const projection of [sessionView, organizationSessions]) {
        const before = await viewAfter<unknown, 'session'>(projection, session, ...life);
        expect(
          await viewAfter<unknown, 'session'>(projection, session, ...life, carriedForward),
        ).toEqual(before);
      }
  });

  test('of another organization has another key', () => {
    expect(sessionKey('org_other', 'ses_1')).not.toBe(sessionKey('org_acme', 'ses_1'));
  });

  test('ignores other aggregates', async () => {
    const organization = { kind: 'organization', organizationId: 'org_acme' } as const;
    const registered = {
      type: 'organization.registered',
      data: { name: 'Acme', tier: 'free' },
    } as const;
    const { key } = await viewAfter<unknown, 'organization'>(sessionView, organization, registered);
    expect(key).toBeNull();
  });
});

describe('a row of the organization’s sessions', () => {
  test('is the API’s row, in its key order', async () => {
    const happened = [requested(), extended(HOUR, T0 + 3 * HOUR), accessed(T0 + MINUTE)] as const;
    const { key, view, order } = await viewAfter(organizationSessions, session, ...happened);
    expect(key).toBe('org_acme/ses_1');
    expect(JSON.stringify(view)).toBe(
      JSON.stringify({
        id: 'ses_1',
        session_name: 'brisk-otter',
        status: 'creating',
        created_at: iso(T0),
        expires_at: iso(T0 + 3 * HOUR),
        last_accessed_at: iso(T0 + MINUTE),
      }),
    );
    expect(order).toBe(T0);
  });

  test('has no last access until the session is accessed', async () => {
    const { view } = await viewAfter(organizationSessions, session, requested());
    expect(view?.last_accessed_at).toBeNull();
  });

  test.each([
    ['requested', [requested()], 'creating', ['open', 'waiting']],
    ['queued', [requested(), queued], 'queued', ['open', 'waiting']],
    ['taken by a server', [requested(), queued, assigned()], 'creating', ['open']],
    ['active', [requested(), activated()], 'active', ['open']],
    ['stopping', [requested(), activated(), stopRequested()], 'stopping', ['open']],
    ['stopping before a server took it', [requested(), stopRequested()], 'stopping', ['open']],
    ['stopped', [requested(), activated(), stopRequested(), stopped(T0)], 'stopped', []],
    ['failed', [requested(), failed()], 'failed', []],
  ] as const)('of a session that is %s', async (_, happened, status, more) => {
    const { lists } = await viewAfter(organizationSessions, session, ...happened);
    const labels = ['label/team=shop', `status/${status}/label/team=shop`];
    const own = ['all', ...labels, `status/${status}`, 'user/user_1'].map(
      (list) => `org_acme/${list}`,
    );
    const others = more.map((list) => (list === 'waiting' ? list : `org_acme/${list}`));
    expect(lists).toEqual([...own, ...others].toSorted());
  });

  test('is in a list of each of its labels', async () => {
    const labels = { team: 'shop', 'run=1': '50%', __proto__x: '' };
    const { lists } = await viewAfter(organizationSessions, session, requested({ labels }));
    for (const [label, value] of Object.entries(labels))
      expect(lists).toContain(sessionsWithLabel('org_acme', label, value));
  });

  test('is in one list for each status and label', async () => {
    const { lists } = await viewAfter(organizationSessions, session, requested(), activated());
    const label = ['team', 'shop'] as const;
    for (const status of [null, 'active'] as const)
      for (const labels of [[], [label]]) {
        const asked = sessionLists('org_acme', status, labels);
        expect(asked).toHaveLength(1);
        expect(lists).toEqual(expect.arrayContaining(asked));
      }
    expect(lists).not.toEqual(expect.arrayContaining(sessionLists('org_acme', 'queued', [label])));
    expect(sessionLists('org_acme', 'active', [label, ['run', '1']])).toHaveLength(2);
  });

  test('is in a list of its user, which alone or with others is asked for', async () => {
    const { lists } = await viewAfter(organizationSessions, session, requested(), activated());
    expect(sessionLists('org_acme', null, [], 'user_1')).toHaveLength(1);
    for (const status of [null, 'active'] as const)
      for (const labels of [[], [['team', 'shop']]] as const) {
        const asked = sessionLists('org_acme', status, labels, 'user_1');
        expect(lists).toEqual(expect.arrayContaining(asked));
        const others = sessionLists('org_acme', status, labels, 'user_2');
        expect(others).toHaveLength(asked.length);
        expect(lists).not.toEqual(expect.arrayContaining(others));
      }
  });

  test('different labels never share a list', () => {
    const labels = [
      ['a=b', 'c'],
      ['a', 'b=c'],
      ['a%3Db', 'c'],
      ['a%253Db', 'c'],
    ] as const;
    const lists = new Set(labels.map(([label, value]) => sessionsWithLabel('o', label, value)));
    expect(lists.size).toBe(labels.length);
  });
});
