import { X509Certificate, createPrivateKey } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '#src/kernel/async/sleep.ts';

/** A key and its certificate, both PEM text. */
export type Certificate = { key: string; cert: string };

const DAY_MS = 24 * 60 * 60 * 1000;
/**
 * Some clients refuse certificates that are valid for more than 398 days. One day is added before.
 */
const VALID_MS = 397 * DAY_MS;
/** Renewed this long before its end. */
const RENEW_BEFORE_MS = 90 * DAY_MS;

/**
 * The self-signed certificate of the embedded TLS listener, for localhost, 127.0.0.1 and ::1: read
 * from the data folder, or created if it is missing, damaged or expires within 90 days. Files:
 * `gateway-cert.pem`, and `gateway-key.pem`, which only its owner can read.
 */
export async function ensureCertificate(dataDir: string, now = new Date()): Promise<Certificate> {
  const files = {
    key: join(dataDir, 'gateway-key.pem'),
    cert: join(dataDir, 'gateway-cert.pem'),
  };
  const kept = await readKept(files);
  if (kept !== null && isGood(kept, now)) return kept;
  const made = await makeCertificate(now);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await replace(files.key, made.key, 0o600);
  await replace(files.cert, made.cert, 0o644);
  return made;
}

export type RenewalOptions = {
  /** Called with each new certificate. */
  onRenewed: (certificate: Certificate) => void;
  onFailure: (error: unknown) => void;
  /** How often the end is checked; default: once a day. */
  everyMs?: number;
  now?: () => Date;
};

/** Renews the certificate of `ensureCertificate` while the process runs, until disposal. */
export function keepRenewing(
  dataDir: string,
  certificate: Certificate,
  { onRenewed, onFailure, everyMs = DAY_MS, now = () => new Date() }: RenewalOptions,
): AsyncDisposable {
  const stop = new AbortController();
  let used = certificate;
  async function check(): Promise<void> {
    const kept = await ensureCertificate(dataDir, now());
    if (kept.cert === used.cert) return;
    used = kept;
    onRenewed(kept);
  }
  async function run(): Promise<void> {
    for (;;) {
      await sleep(everyMs, stop.signal, { ref: false });
      if (stop.signal.aborted) return;
      await check().catch(onFailure);
    }
  }
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

async function readKept(files: { key: string; cert: string }): Promise<Certificate | null> {
  try {
    return { key: await readFile(files.key, 'utf8'), cert: await readFile(files.cert, 'utf8') };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

function isGood({ key, cert }: Certificate, now: Date): boolean {
  try {
    const x509 = new X509Certificate(cert);
    return (
      x509.checkPrivateKey(createPrivateKey(key)) &&
      x509.checkHost('localhost') !== undefined &&
      x509.validFromDate <= now &&
      x509.validToDate.getTime() - now.getTime() > RENEW_BEFORE_MS
    );
  } catch {
    return false; // damaged: it is replaced
  }
}

async function makeCertificate(now: Date): Promise<Certificate> {
  // Only the first start on a data folder makes one: the package takes 0.1 s to load.
  const { generate } = await import('selfsigned');
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(now.getTime() - DAY_MS), // clocks differ
    notAfterDate: new Date(now.getTime() + VALID_MS),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
          { type: 7, ip: '::1' },
        ],
      },
    ],
  });
  return { key: made.private, cert: made.cert };
}

/** Replaces the file atomically; it is never readable by others. */
async function replace(file: string, text: string, mode: number): Promise<void> {
  const next = `${file}.${process.pid}`;
  await writeFile(next, text, { mode, flush: true });
  await rename(next, file);
}
