import { describe, expect, it } from 'vitest';
import { checkCertificates } from '#src/apps/doctor/check-certificates.ts';

const NOW = Date.parse('2026-11-23T12:00:00.000Z');
const inDays = (days: number) => NOW + days * 24 * 60 * 60_000;

describe('a certificate', () => {
  it.each([
    [397, 'ok', 'ends in 397 days'],
    [60, 'ok', 'ends in 60 days'],
    [59.9, 'warn', 'ends in 59 days'],
    [14, 'warn', 'ends in 14 days'],
    [13.9, 'bad', 'ends in 13 days'],
    [0, 'bad', 'ended on 2026-11-23T12:00:00.000Z'],
    [-2, 'bad', 'ended on 2026-11-21T12:00:00.000Z'],
  ])('with %d days left is %s', (days, level, what) => {
    expect(checkCertificates({ redis_server: inDays(days) }, NOW)).toMatchObject([
      { check: 'certificates.redis_server', level, what: `redis_server ${what}` },
    ]);
  });

  it('that cannot be read is a warning', () => {
    expect(checkCertificates({ nats_ca: null }, NOW)).toMatchObject([
      { check: 'certificates.nats_ca', level: 'warn', what: 'nats_ca cannot be read' },
    ]);
  });

  it('says whose renewal it is', () => {
    const found = checkCertificates({ tls: inDays(3), nats_server: inDays(3) }, NOW);
    expect(found.map(({ advice }) => advice)).toEqual([
      expect.stringContaining('TLS_CERT_FILE'),
      expect.stringContaining('deploy/up.sh'),
    ]);
  });
});
