import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { CertificateFiles } from '#src/kernel/config/tls.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';

/** A key and its certificate with the chain, both PEM text. */
export type Certificate = { key: string; cert: string };

/** The configured certificate, as its files contain it now. */
export type WatchedCertificate = AsyncDisposable & {
  readonly now: Certificate;
  /** The listener is called with each new certificate, until disposal. */
  onChange(listener: (certificate: Certificate) => void): void;
};

/** Longest time until a renewed certificate is used; it is renewed days before its expiry. */
const POLL_EVERY_MS = 10_000;

/**
 * Watches a certificate's files by reading them every ten seconds: a symbolic link that is moved,
 * as in mounted volumes, raises no file system event. While key and certificate do not match (only
 * one is written yet, or one is wrong), the certificate in use stays.
 */
export async function watchCertificate(
  files: CertificateFiles,
  log: Logger,
  pollEveryMs = POLL_EVERY_MS,
): Promise<WatchedCertificate> {
  let now = await read(files);
  const listeners: ((certificate: Certificate) => void)[] = [];
  const stop = new AbortController();

  async function reload(): Promise<void> {
    const next = await read(files);
    if (next.cert === now.cert && next.key === now.key) return;
    const leaf = new X509Certificate(next.cert);
    if (!leaf.checkPrivateKey(createPrivateKey(next.key)))
      throw new Error('the key does not match the certificate');
    now = next;
    log.info({ certFile: files.certFile, validTo: leaf.validTo }, 'certificate reloaded');
    for (const listener of listeners) listener(now);
  }
  async function follow(): Promise<void> {
    let lastFailure = '';
    for (;;) {
      await sleep(pollEveryMs, stop.signal, { ref: false });
      if (stop.signal.aborted) return;
      const failure = await reload().then(
        () => '',
        (error: unknown) => String(error),
      );
      // Log each failure once, not every ten seconds.
      if (failure !== '' && failure !== lastFailure)
        log.error({ ...files, reason: failure }, 'certificate reload failed');
      lastFailure = failure;
    }
  }
  const following = follow();
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
