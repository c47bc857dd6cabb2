import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ensureCertificate,
  keepRenewing,
  type Certificate,
} from '#src/roles/gateway/certificate.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'certificate-'));
});
afterAll(() => rm(root, { recursive: true }));

test('the first start creates a certificate for this machine, later starts keep it', async () => {
  const folder = join(root, 'kept');
  const made = await ensureCertificate(folder);
  const x509 = new X509Certificate(made.cert);
  expect(x509.checkHost('localhost')).toBe('localhost');
  expect(x509.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(x509.checkIP('::1')).toBe('::1');
  expect(x509.checkHost('example.com')).toBeUndefined();
  const days = (x509.validToDate.getTime() - x509.validFromDate.getTime()) / DAY_MS;
  expect(days).toBeLessThanOrEqual(398);
  expect((await stat(join(folder, 'gateway-key.pem'))).mode & 0o777).toBe(0o600);
  expect(await ensureCertificate(folder)).toEqual(made);
});

test('a certificate that has expired or expires soon is replaced', async () => {
  const folder = join(root, 'old');
  const made = await ensureCertificate(folder);
  expect(await ensureCertificate(folder, later(300))).toEqual(made);
  const next = await ensureCertificate(folder, later(320));
  expect(next).not.toEqual(made);
  expect(await ensureCertificate(folder, later(320))).toEqual(next);
  expect((await ensureCertificate(folder, later(2000))).cert).not.toBe(next.cert);
});

test('a damaged certificate or one that does not match its key is replaced', async () => {
  const folder = join(root, 'damaged');
  const made = await ensureCertificate(folder);
  await writeFile(join(folder, 'gateway-cert.pem'), 'rubbish');
  const second = await ensureCertificate(folder);
  expect(second.cert).not.toBe(made.cert);
  await writeFile(join(folder, 'gateway-key.pem'), made.key);
  const third = await ensureCertificate(folder);
  expect(third.key).not.toBe(made.key);
  expect(await readFile(join(folder, 'gateway-key.pem'), 'utf8')).toBe(third.key);
});

function later(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}

test('is renewed while the process runs', async () => {
  const folder = join(root, 'renewed');
  const made = await ensureCertificate(folder);
  let now = later(300);
  const renewed = Promise.withResolvers<Certificate>();
  const options = { onRenewed: renewed.resolve, onFailure: renewed.reject, everyMs: 5 };
  await using _ = keepRenewing(folder, made, { ...options, now: () => now });
  now = later(320);
  const next = await renewed.promise;
  expect(next.cert).not.toBe(made.cert);
  expect(await ensureCertificate(folder, now)).toEqual(next);
});
