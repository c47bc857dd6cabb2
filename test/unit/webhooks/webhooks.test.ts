import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { flawByName, flawOf, reachableAddresses } from '#src/features/webhooks/addresses.ts';
import { defaultPauses, pauseAfter, readRetryAfter } from '#src/features/webhooks/pauses.ts';
import {
  asked,
  PROBE_EVERY_MS,
  probeFailed,
  probing,
  recovered,
} from '#src/features/webhooks/probes.ts';
import {
  BLOCKED_LANES_MAX,
  done,
  failed,
  follow,
  newProgress,
  nextDue,
  OPEN_MAX,
  opened,
  roomOf,
  type Attempt,
  type Progress,
} from '#src/features/webhooks/progress.ts';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import {
  createWebhookSecrets,
  GRACE_MS,
  signedHeaders,
  validGenerations,
} from '#src/features/webhooks/signature.ts';

const HOUR = 3_600_000;
const keysOf = (...letters: string[]) =>
  createMasterKeys(letters.map((letter) => Buffer.alloc(32, letter)));

describe('signatures', () => {
  const { secretOf } = createWebhookSecrets(keysOf('k'));

  test('the package of the specification verifies them, with each of the secrets', () => {
    const secrets = [secretOf('whk_1', 2), secretOf('whk_1', 1)];
    const body = '{"type":"session.stopped","data":{"name":"ä"}}';
    const timestamp = Math.floor(Date.now() / 1_000);
    const headers = signedHeaders({ id: 'evt_1', timestamp, body }, secrets);
    for (const secret of secrets)
      expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    const others = [secretOf('whk_2', 1), secretOf('whk_1', 3)];
    for (const other of others) expect(() => new Webhook(other).verify(body, headers)).toThrow();
  });

  test('a secret is the same each time, and of its webhook and generation alone', () => {
    expect(secretOf('whk_1', 1)).toBe(createWebhookSecrets(keysOf('k')).secretOf('whk_1', 1));
    const other = createWebhookSecrets(keysOf('o')).secretOf('whk_1', 1);
    expect(
      new Set([secretOf('whk_1', 1), secretOf('whk_1', 2), secretOf('whk_2', 1), other]).size,
    ).toBe(4);
  });

  test('the secrets of an older master key are signed with, and not given out', () => {
    const after = createWebhookSecrets(keysOf('n', 'k'));
    expect(after.secretOf('whk_1', 1)).not.toBe(secretOf('whk_1', 1));
    expect(after.secretsOf('whk_1', [2, 1])).toEqual([
      after.secretOf('whk_1', 2),
      secretOf('whk_1', 2),
      after.secretOf('whk_1', 1),
      secretOf('whk_1', 1),
    ]);
    expect(createWebhookSecrets(keysOf('n')).secretsOf('whk_1', [1])).toEqual([
      after.secretOf('whk_1', 1),
    ]);
  });

  test('the secret before a rotation is valid for a day', () => {
    const at = Date.parse('2026-11-20T09:30:00.000Z');
    const rotated = { generation: 3, rotatedAt: new Date(at).toISOString() };
    expect(validGenerations(rotated, at)).toEqual([3, 2]);
    expect(validGenerations(rotated, at + GRACE_MS - 1)).toEqual([3, 2]);
    expect(validGenerations(rotated, at + GRACE_MS)).toEqual([3]);
    expect(validGenerations({ generation: 1 }, at)).toEqual([1]);
  });
});

describe('pauses', () => {
  test('they grow, and are three days in sum', () => {
    const sorted = defaultPauses.toSorted((one, other) => one - other);
    expect(defaultPauses).toEqual(sorted);
    const sum = defaultPauses.reduce((all, one) => all + one, 0);
    expect(sum).toBeGreaterThan(72 * HOUR);
    expect(sum).toBeLessThan(78 * HOUR);
    expect(pauseAfter(defaultPauses.length + 1, null)).toBeNull();
  });

  test.each([
    [null, 5_000],
    [1_000, 5_000],
    [60_000, 60_000],
    [99 * HOUR, 12 * HOUR],
  ])('a receiver that asks for %s ms gets %s ms', (asked, given) => {
    expect(pauseAfter(1, asked)).toBe(given);
  });

  test.each([
    ['120', 120_000],
    ['Fri, 20 Nov 2026 10:00:00 GMT', 1_800_000],
    ['Fri, 20 Nov 2020 10:00:00 GMT', 0],
    ['soon', null],
    [undefined, null],
  ])('Retry-After %s is %s ms', (text, ms) => {
    expect(readRetryAfter(text, Date.parse('2026-11-20T09:30:00.000Z'))).toBe(ms);
  });
});

describe('addresses', () => {
  const rules = {
    allowsPrivate: false,
    resolve: async (name: string) => {
      if (name === 'inside.example') return ['93.184.216.34', '10.0.0.1'];
      return name === 'alias.example' ? ['93.184.216.34', '203.0.113.7'] : ['93.184.216.34'];
    },
    own: {
      isOwnHost: (host: string) => ['bss.example.org', '203.0.113.8'].includes(host),
      isOwnAddress: async (address: string) => address === '203.0.113.7',
    },
  };

  test.each([
    ['http://hooks.example.com/', 'not-https'],
    ['ftp://hooks.example.com/', 'not-a-url'],
    ['https://', 'not-a-url'],
    ['hooks.example.com', 'not-a-url'],
    ['https://hooks.example.com/#top', 'not-a-url'],
    ['https://127.0.0.1/', 'inside'],
    ['https://0x7f.1/', 'inside'],
    ['https://10.1.2.3/', 'inside'],
    ['https://172.16.0.1/', 'inside'],
    ['https://192.168.1.1/', 'inside'],
    ['https://100.64.0.1/', 'inside'],
    ['https://169.254.169.254/latest/meta-data', 'inside'],
    ['https://[::1]/', 'inside'],
    ['https://[fe80::1]/', 'inside'],
    ['https://[fd00::1]/', 'inside'],
    ['https://[::ffff:10.0.0.1]/', 'inside'],
    ['https://[2002:a00:1::]/', 'inside'],
    ['https://[64:ff9b::a00:1]/', 'inside'],
    ['https://inside.example/', 'inside'],
    ['https://bss.example.org/api/sessions', 'own'],
    ['https://BSS.example.org.:8443/', 'own'],
    ['https://203.0.113.8/', 'own'],
    ['https://0xcb.0.0x71.7/', 'own'],
    ['https://alias.example/', 'own'],
    ['https://hooks.example.com:8443/path?key=1', null],
    ['https://[2606:4700::1]/', null],
  ])('%s: %s', async (url, flaw) => {
    expect(await flawByName(url, rules)).toBe(flaw);
  });

  test('an operator may allow addresses inside, and http', async () => {
    const open = { ...rules, allowsPrivate: true };
    expect(flawOf('http://127.0.0.1:1/', open)).toBeNull();
    expect(await flawByName('http://inside.example/', open)).toBeNull();
    const { addresses } = await reachableAddresses('inside.example', open);
    expect(addresses).toHaveLength(2);
  });

  test('a name that has an address inside at the moment of the connection is refused', async () => {
    expect(await reachableAddresses('inside.example', rules)).toEqual({
      ...{ addresses: [], flaw: 'inside' },
    });
    expect(await reachableAddresses('alias.example', rules)).toEqual({
      ...{ addresses: [], flaw: 'own' },
    });
    const rebound = { ...rules, resolve: async () => ['127.0.0.1'] };
    expect((await reachableAddresses('hooks.example.com', rebound)).flaw).toBe('inside');
  });
});

describe('progress', () => {
  const attempt: Attempt = {
    ...{ at: '2026-11-20T09:30:00.000Z', outcome: 'failed', status: 500, eventId: 'evt_1' },
  };
  const open = (progress: Progress, lane: string, sequence: number) =>
    opened(progress, lane, { sequence, at: sequence });

  test('what is done leaves its lane; what is not stays below the position', () => {
    let progress = open(open(open(newProgress(0), 'a', 1), 'b', 2), 'a', 3);
    progress = done(progress, 'b', { ...attempt, outcome: 'delivered' });
    expect(progress.position).toBe(3);
    expect(Object.keys(progress.lanes)).toEqual(['a']);
    expect(progress.lanes['a']?.open.map(({ sequence }) => sequence)).toEqual([1, 3]);
    progress = failed(progress, 'a', attempt, 500);
    expect([progress.failingSince, nextDue(progress, [])]).toEqual([attempt.at, 500]);
    expect(nextDue(progress, ['a'])).toBeNull();
    progress = done(progress, 'a', { ...attempt, outcome: 'delivered' });
    expect(progress.lanes['a']).toMatchObject({ attempts: 0, nextAt: 0 });
    expect(progress.failingSince).toBeNull();
  });

  test('with too many blocked lanes, or open events, nothing more is read', () => {
    let progress = newProgress(0);
    for (let lane = 0; lane < BLOCKED_LANES_MAX; lane += 1) {
      expect(roomOf(progress)).toBeGreaterThan(0);
      progress = failed(open(progress, `lane_${lane}`, lane + 1), `lane_${lane}`, attempt, 1);
    }
    expect(roomOf(progress)).toBe(0);
    let long = newProgress(0);
    for (let sequence = 1; sequence <= OPEN_MAX; sequence += 1) long = open(long, 'a', sequence);
    expect(roomOf(long)).toBe(0);
  });

  test('a start forgets failed attempts, a replay goes back; each is applied once', () => {
    const stuck = failed(open(newProgress(9), 'a', 10), 'a', attempt, 99_999);
    const started = follow(stuck, { starts: 1 });
    expect(started.lanes['a']).toMatchObject({ attempts: 0, nextAt: 0 });
    expect(started.lanes['a']?.open).toHaveLength(1);
    const orders = { starts: 1, replay: { number: 1, from: 4 } };
    const replayed = follow(started, orders);
    expect([replayed.position, replayed.lanes]).toEqual([3, {}]);
    expect(follow(replayed, orders)).toBe(replayed);
  });

  const failedAt = Date.parse(attempt.at);
  const delivered: Attempt = { ...attempt, outcome: 'delivered' };
  /** As many blocked lanes as make the webhook wait, due a day later, the first of them first. */
  function waiting(askedUntil?: number): Progress {
    let progress = newProgress(0);
    for (let lane = 0; lane < BLOCKED_LANES_MAX; lane += 1) {
      const dueAt = failedAt + 24 * HOUR + lane;
      const name = `lane_${lane}`;
      progress = failed(open(progress, name, lane + 1), name, attempt, dueAt);
      if (askedUntil !== undefined) progress = asked(progress, name, askedUntil);
    }
    return progress;
  }

  test('while all waits, one lane is probed every five minutes, which counts as no attempt', () => {
    let progress = probing(waiting(), [], PROBE_EVERY_MS);
    expect(nextDue(progress, [])).toBe(failedAt + PROBE_EVERY_MS);
    expect(probing(progress, [], PROBE_EVERY_MS)).toBe(progress);
    const at = new Date(failedAt + PROBE_EVERY_MS).toISOString();
    progress = probeFailed(progress, 'lane_0', { ...attempt, at });
    expect(progress.lanes['lane_0']).toMatchObject({ attempts: 1, nextAt: failedAt + 24 * HOUR });
    expect(nextDue(progress, [])).toBe(failedAt + 24 * HOUR);
    // The next one goes elsewhere: one session's events may be what fails.
    progress = probing(progress, [], PROBE_EVERY_MS);
    expect(progress.lanes['lane_1']?.probeAt).toBe(failedAt + 2 * PROBE_EVERY_MS);
    const { lane_0: _, ...fewer } = progress.lanes;
    const reading = { ...progress, lanes: fewer };
    expect(probing(reading, [], PROBE_EVERY_MS)).toBe(reading);
  });

  test('a probe comes no earlier than any Retry-After asked, and not while a send is under way', () => {
    const until = failedAt + 2 * HOUR;
    expect(nextDue(probing(waiting(until), [], PROBE_EVERY_MS), [])).toBe(until);
    const planned = probing(waiting(), [], PROBE_EVERY_MS);
    expect(asked(planned, 'lane_9', until).lanes['lane_0']?.probeAt).toBe(until);
    const late = waiting(failedAt + 48 * HOUR);
    expect(probing(late, [], PROBE_EVERY_MS)).toBe(late);
    const one = waiting();
    expect(probing(one, ['lane_7'], PROBE_EVERY_MS)).toBe(one);
  });

  test('an endpoint that is back gets what waits, one lane after the other', () => {
    const now = failedAt + HOUR;
    const { lanes } = recovered(done(waiting(), 'lane_0', delivered), now);
    const times = Object.values(lanes).map(({ probeAt }) => probeAt ?? 0);
    expect(new Set(times).size).toBe(BLOCKED_LANES_MAX - 1);
    expect(Math.min(...times)).toBe(now);
    expect(Math.max(...times)).toBeLessThan(now + 60_000);
    expect(lanes['lane_1']).toMatchObject({ attempts: 1, nextAt: failedAt + 24 * HOUR + 1 });
    const until = now + 2 * HOUR;
    const later = recovered(done(waiting(until), 'lane_0', delivered), now);
    expect(Math.min(...Object.values(later.lanes).map(({ probeAt }) => probeAt ?? 0))).toBe(until);
  });

  test('a lane that fails while others pass is probed every five minutes at most', () => {
    const now = failedAt + HOUR;
    let progress = failed(open(newProgress(0), 'a', 1), 'a', attempt, failedAt + 24 * HOUR);
    progress = recovered(progress, now);
    expect(nextDue(progress, [])).toBe(now);
    const at = new Date(now).toISOString();
    progress = recovered(probeFailed(progress, 'a', { ...attempt, at }), now + 1_000);
    expect(nextDue(progress, [])).toBe(now + PROBE_EVERY_MS);
    expect(progress.lanes['a']?.attempts).toBe(1);
    expect(done(progress, 'a', delivered).lanes).toEqual({});
  });
});
