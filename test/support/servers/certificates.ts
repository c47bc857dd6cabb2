import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** Files of a self-signed certificate for this machine, PEM. */
export type CertificateFiles = { cert: string; key: string };

const DAY_MS = 24 * 60 * 60_000;

/** Creates one, for servers and clients alike; clients trust it with `cert` as their authority. */
export async function makeCertificate(folder: string, name: string): Promise<CertificateFiles> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() - DAY_MS),
    notAfterDate: new Date(Date.now() + DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  await mkdir(folder, { recursive: true });
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}-key.pem`) };
  await writeFile(files.cert, made.cert);
  await writeFile(files.key, made.private, { mode: 0o600 });
  return files;
}
