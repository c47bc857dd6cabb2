import { expect } from 'vitest';
import type { startApp } from '../service/api-in-memory.ts';
import { startReceiver, type Answer } from './receiver.ts';

const ADMIN = { authorization: 'Bearer admin' };

/** A receiver with a webhook that leads to it. */
export async function openWebhook(
  app: Pick<Awaited<ReturnType<typeof startApp>>, 'request'>,
  fields: object = {},
  answer?: Answer,
) {
  let secret = '';
  const receiver = await startReceiver(() => secret, answer);
  const { status, body } = await app.request(
    'POST',
    '/api/webhooks',
    { url: receiver.url, ...fields },
    ADMIN,
  );
  expect(status).toBe(201);
  secret = body.secret as string;
  const path = `/api/webhooks/${body.id as string}`;
  return {
    ...receiver,
    id: body.id as string,
    path,
    secret,
    setSecret: (next: string) => void (secret = next),
    get: async () => (await app.request('GET', path, undefined, ADMIN)).body,
    change: async (change: object) => app.request('PATCH', path, change, ADMIN),
    remove: async () => app.request('DELETE', path, undefined, ADMIN),
    deliveries: async () =>
      (await app.request('GET', `${path}/deliveries?limit=100`, undefined, ADMIN)).body.deliveries,
    async [Symbol.asyncDispose]() {
      await app.request('DELETE', path, undefined, ADMIN);
      await receiver[Symbol.asyncDispose]();
    },
  };
}
