import { Agent, request } from 'node:http';
import { DEV_KEY } from '#test/support/service/service.ts';

const agent = new Agent({ keepAlive: true, maxSockets: 16 });

/**
 * A request over a kept connection and its whole answer: a minimal client, since its own work is
 * measured too.
 */
export function send(
  method: string,
  url: string,
  body = '',
  more: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const headers = {
    authorization: `Bearer ${DEV_KEY}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...more,
  };
  const sent = request(url, { method, agent, headers }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
  });
  sent.on('error', reject).end(body);
  return promise;
}
