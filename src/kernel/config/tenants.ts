import { BadConfig, integer, url, type Read } from './parse.ts';

/** How tenants connect to NATS. */
export type TenantsConfig = {
  /** Port of the embedded nats-server, on the host of the API; null: a free port on loopback. */
  natsPort: number | null;
  /** Address of NATS for tenants; null: the address that the service itself uses. */
  publicNatsUrl: string | null;
  /** Account seed (`SA…`); its public key is the issuer in the NATS servers' configuration. */
  issuerSeed: string | null;
  /** Upper bound of concurrent NATS connections with one API key. */
  connectionsPerKeyMax: number;
};

export const tenantVariables = {
  NATS_PORT: {
    fallback: '',
    meaning: 'port of the embedded nats-server, for tenants; empty: a free one on 127.0.0.1',
  },
  PUBLIC_NATS_URL: { fallback: '', meaning: 'nats:// address by which tenants reach NATS' },
  NATS_ISSUER_SEED: {
    fallback: '',
    meaning: 'account seed (SA…) that admits tenants at NATS_URL; empty: no tenant may connect',
  },
  TENANT_CONNECTIONS_PER_KEY: {
    fallback: '64',
    meaning: 'maximum number of NATS connections of an API key',
  },
} as const;

/** @throws BadConfig */
export function readTenants(read: Read<keyof typeof tenantVariables>): TenantsConfig {
  const seed = read('NATS_ISSUER_SEED');
  if (seed !== '' && !/^SA[A-Z2-7]{56}$/.test(seed))
    throw new BadConfig(
      'NATS_ISSUER_SEED: is not the seed of an account key: SA and 56 more characters',
    );
  return {
    natsPort: read('NATS_PORT') === '' ? null : integer('NATS_PORT', read, 1, 65_535),
    publicNatsUrl: url('PUBLIC_NATS_URL', read, ['nats:', 'tls:']),
    issuerSeed: seed === '' ? null : seed,
    connectionsPerKeyMax: integer('TENANT_CONNECTIONS_PER_KEY', read, 1, 10_000),
  };
}
