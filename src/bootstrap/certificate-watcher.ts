import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { CertificateFiles } from '#src/config/tls.ts';
import type { Log } from '#src/telemetry/logger.ts';

/** A key and its certificate with the chain, both PEM text. */
export type Certificate = { key: string; cert: string };

/** The given certificate as its files have it now. */
export type GivenCertificate = AsyncDisposable & {
  readonly now: Certificate;
  /** Called with each new one; its listeners end with it. */
  onChange(listener: (certificate: Certificate) => void): void;
};

/** A certificate is renewed days before it ends; who renews it waits this long at most. */
const LOOK_EVERY_MS = 10_000;

/**
 * Follows a certificate's files: looked at every ten seconds, since a link that is moved, as
 * volumes have them, gives no other sign. Two that do not fit are written one after the other, or
 * wrong: the ones in use stay.
 */
export async function followCertificate(
  files: CertificateFiles,
  log: Log,
  lookEveryMs = LOOK_EVERY_MS,
): Promise<GivenCertificate> {
  let now = await read(files);
  const listeners: ((certificate: Certificate) => void)[] = [];
  const stop = new AbortController();

  async function look(): Promise<void> {
    const next = await read(files);
    if (next.cert === now.cert && next.key === now.key) return;
    const leaf = new X509Certificate(next.cert);
    if (!leaf.checkPrivateKey(createPrivateKey(next.key))) throw new Error('the key is another’s');
    now = next;
    log.info({ certFile: files.certFile, validTo: leaf.validTo }, 'certificate read again');
    for (const listener of listeners) listener(now);
  }
  async function follow(): Promise<void> {
    let trouble = '';
    for (;;) {
      await pause(lookEveryMs, undefined, { signal: stop.signal, ref: false });
      const said = await look().then(
        () => '',
        (error: unknown) => String(error),
      );
      // Once for each trouble, however long it lasts.
      if (said !== '' && said !== trouble)
        log.error({ ...files, reason: said }, 'certificate not read again');
      trouble = said;
    }
  }
  const following = follow().catch(() => undefined);
  return {
    get now() {
      return now;
    },
    onChange: (listener) => void listeners.push(listener),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following;
    },
  };
}

async function read({ certFile, keyFile }: CertificateFiles): Promise<Certificate> {
  return { key: await readFile(keyFile, 'utf8'), cert: await readFile(certFile, 'utf8') };
}
