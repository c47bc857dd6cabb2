import { expect, test } from 'vitest';
import type { OrganizationEvent } from '#events/organization.ts';
import type { Webhook } from '#events/organization/webhook.ts';
import { GRACE_MS, validGenerations } from '#src/features/webhooks/signature.ts';
import { organization } from '#test/support/given-when-then.ts';

const HOUR = 3_600_000;
const T0 = Date.parse('2026-11-20T09:30:00.000Z');
const webhookId = 'whk_1';
const iso = (time: number) => new Date(time).toISOString();

const created = {
  ...{ webhookId, endpoint: 'https://a.example/', address: 'https://a.example', types: [] },
  ...{ labels: {}, createdAt: iso(T0), by: 'ada' },
};
const history: OrganizationEvent[] = [
  { type: 'organization.registered', data: { name: 'Acme', tier: 'free' } },
  { type: 'organization.webhook-added', data: created },
];
const rotations = (times: readonly number[]) =>
  times.map((time, index): OrganizationEvent => {
    const data = { webhookId, generation: index + 2, at: iso(time), by: 'ada' };
    return { type: 'organization.webhook-secret-rotated', data };
  });

/** Holds the organization's webhook after rotations at these times. */
function rotated(times: readonly number[], earlierRotations?: readonly number[]): Webhook {
  const rotatedAt = iso(times.at(-1) ?? 0);
  const earlier = earlierRotations?.map(iso);
  const webhook: Webhook = {
    ...{ ...created, generation: times.length + 1, rotatedAt, starts: 0 },
    ...(earlier === undefined ? {} : { earlierRotations: earlier }),
  };
  organization.given(...history, ...rotations(times)).stateIs({ webhooks: [webhook] });
  return webhook;
}

test('each secret is valid for a day after its own rotation, also with several in a day', () => {
  const webhook = rotated([T0, T0 + HOUR, T0 + 2 * HOUR], [T0 + HOUR, T0]);
  expect(validGenerations(webhook, T0 + 2 * HOUR)).toEqual([4, 3, 2, 1]);
  expect(validGenerations(webhook, T0 + GRACE_MS)).toEqual([4, 3, 2]);
  expect(validGenerations(webhook, T0 + HOUR + GRACE_MS)).toEqual([4, 3]);
  expect(validGenerations(webhook, T0 + 2 * HOUR + GRACE_MS)).toEqual([4]);
});

test('a rotation does not make a secret valid again whose day is over', () => {
  const webhook = rotated([T0, T0 + GRACE_MS], [T0]);
  expect(validGenerations(webhook, T0 + GRACE_MS)).toEqual([3, 2]);
});

test('five earlier secrets are valid at most: a further rotation ends the oldest one', () => {
  const times = Array.from({ length: 7 }, (_, count) => T0 + count * 1_000);
  const webhook = rotated(times, times.slice(2, 6).toReversed());
  expect(validGenerations(webhook, T0 + HOUR)).toEqual([8, 7, 6, 5, 4, 3]);
});
