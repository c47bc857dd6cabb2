/** Requests of a Pod to its own API server, as its service account. */
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
const WITHIN_MS = 10_000;

const [token, ca, own] = await Promise.all(
  ['token', 'ca.crt', 'namespace'].map((file) => readFile(join(ACCOUNT, file), 'utf8')),
);
export const namespace = own;

/**
 * @param content the body; absent: none
 * @returns the answer; null: there is no such object
 * @throws Error where the API server refuses, or does not answer within 10 s
 */
export async function ask(method, path, content) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(WITHIN_MS);
  const asked = request({ host, port, path, method, headers, ca, signal }, resolve);
  asked.on('error', reject);
  asked.end(content && JSON.stringify(content));
  const answer = await promise;
  if (answer.statusCode === 404) return null;
  if (answer.statusCode >= 300)
    throw new Error(`${method} ${path}: ${answer.statusCode} ${await text(answer)}`);
  return json(answer);
}
