import {
  BadConfig,
  integer,
  optional,
  port,
  url,
  type Form,
  type Values,
  variable,
} from './parse.ts';

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

const accountSeed: Form<string> = {
  says: '',
  parse(given, name) {
    if (!/^SA[A-Z2-7]{56}$/.test(given))
      throw new BadConfig(`${name}: is not the seed of an account key: SA and 56 more characters`);
    return given;
  },
};

export const tenantVariables = {
  NATS_PORT: variable(
    optional(port),
    '',
    'port of the embedded nats-server, for tenants; empty: a free one on 127.0.0.1',
  ),
  PUBLIC_NATS_URL: variable(
    optional(url('nats:', 'tls:')),
    '',
    'nats:// address by which tenants reach NATS',
  ),
  NATS_ISSUER_SEED: variable(
    optional(accountSeed),
    '',
    'account seed (SA…) that admits tenants at NATS_URL; empty: no tenant may connect',
  ),
  TENANT_CONNECTIONS_PER_KEY: variable(
    integer(1, 10_000),
    '64',
    'maximum number of NATS connections of an API key',
  ),
} as const;

/** @throws BadConfig */
export function readTenants(values: Values<typeof tenantVariables>): TenantsConfig {
  return {
    natsPort: values.NATS_PORT,
    publicNatsUrl: values.PUBLIC_NATS_URL,
    issuerSeed: values.NATS_ISSUER_SEED,
    connectionsPerKeyMax: values.TENANT_CONNECTIONS_PER_KEY,
  };
}
