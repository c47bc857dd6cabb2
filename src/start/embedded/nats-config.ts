import {
  serverServices,
  SERVICE_ACCOUNT,
  TENANTS_ACCOUNT,
  tenantServices,
} from '#events/tenant-subjects.ts';

export type NatsSettings = {
  host: string;
  port: number;
  storeDir: string;
  /** Credentials of the service itself. */
  user: string;
  password: string;
  /** Public key of the issuer that admits tenants. */
  issuer: string;
};

/**
 * The configuration of the embedded nats-server: the service's account with the streams, the
 * tenants' account with the requests that it may make, and the auth callout to the service. The
 * README of src/features/nats-tenants has the same for an external nats-server.
 */
export function natsConfig(settings: NatsSettings): string {
  const { host, port, storeDir, user, password, issuer } = settings;
  const imported = tenantServices.map(({ subject, as }) => {
    const from = `{ account: ${SERVICE_ACCOUNT}, subject: "${subject}" }`;
    return `{ service: ${from}, to: "${as}" }`;
  });
  const ofServers = serverServices.map(({ subject }) => {
    return `{ service: { account: SYS, subject: "${subject}" } }`;
  });
  return [
    'server_name: embedded',
    `host: ${JSON.stringify(host)}`,
    `port: ${port}`,
    'max_payload: 1MB',
    `jetstream { store_dir: ${JSON.stringify(storeDir)} }`,
    'system_account: SYS',
    'accounts {',
    '  SYS {',
    ...listed('exports', exported(serverServices, SERVICE_ACCOUNT)),
    '  }',
    `  ${SERVICE_ACCOUNT} {`,
    '    jetstream: enabled',
    `    users: [{ user: ${user}, password: ${JSON.stringify(password)} }]`,
    ...listed('imports', ofServers),
    ...listed('exports', exported(tenantServices, TENANTS_ACCOUNT)),
    '  }',
    `  ${TENANTS_ACCOUNT} {`,
    ...listed('imports', imported),
    '  }',
    '}',
    'authorization {',
    `  auth_callout { issuer: ${issuer}, account: ${SERVICE_ACCOUNT}, auth_users: [${user}] }`,
    '}',
    '',
  ].join('\n');
}

function exported(
  services: readonly { subject: string; answersMany: boolean }[],
  to: string,
): string[] {
  return services.map(({ subject, answersMany }) => {
    const response = answersMany ? 'response: stream, ' : '';
    return `{ service: "${subject}", ${response}accounts: [${to}] }`;
  });
}

function listed(name: string, items: readonly string[]): string[] {
  return [`    ${name}: [`, ...items.map((item) => `      ${item}`), '    ]'];
}
