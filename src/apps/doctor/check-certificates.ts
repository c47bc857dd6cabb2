import { findingsOf, type Finding } from './finding.ts';

const DAY_MS = 24 * 60 * 60_000;
const WARN_DAYS = 60;
const BAD_DAYS = 14;

/** What an operator does about a certificate that ends, by its name. */
const advices: Record<string, string> = {
  tls: 'replace TLS_CERT_FILE and TLS_KEY_FILE: both are read again within 10 s',
  gateway: 'the gateway renews it by itself 90 days before its end: look for errors in its log',
  nats_client: 'replace NATS_CERT_FILE and NATS_KEY_FILE, then restart',
  redis_client: 'replace REDIS_CERT_FILE and REDIS_KEY_FILE, then restart',
};
const INSIDE = 'run deploy/up.sh, which renews it (runbook: Certificates), or renew your own';

/**
 * Findings about the ends of certificates. Pure.
 * @param ends in ms since the epoch, by name; null: it cannot be read
 */
export function checkCertificates(
  ends: Readonly<Record<string, number | null>>,
  now: number,
): Finding[] {
  const { found, ok, warn, bad } = findingsOf('certificates');
  for (const [name, end] of Object.entries(ends)) {
    if (end === null) {
      warn(name, `${name} cannot be read`, 'check its file, or that its server answers with TLS');
      continue;
    }
    const days = Math.floor((end - now) / DAY_MS);
    const what =
      end <= now
        ? `${name} ended on ${new Date(end).toISOString()}`
        : `${name} ends in ${days} days`;
    if (days >= WARN_DAYS) ok(name, what);
    else (days < BAD_DAYS ? bad : warn)(name, what, advices[name] ?? INSIDE);
  }
  return found;
}
