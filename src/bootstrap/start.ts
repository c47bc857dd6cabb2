import { compose, type Service } from './compose.ts';
import { BadConfig } from '#src/config/parse.ts';
import type { Config } from '#src/config/config.ts';
import { lockDataDir } from '#src/embedded/data-dir.ts';
import { startEmbedded } from '#src/embedded/embedded.ts';
import { assertPortsFree } from '#src/embedded/ports.ts';
import { ensurePrograms } from '#src/embedded/programs.ts';
import { writeRuntime } from '#src/embedded/runtime-file.ts';
import { loadOrCreateSecret, newSecret, replaceSecret } from '#src/embedded/secrets.ts';
import { isRejection, problemBody } from '#src/errors.ts';
import { hashKey, newApiKey, newId } from '#src/ids.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { ensureOrganization } from '#src/commands/register-organization.ts';
import { newAccountSeed, readIssuer, type Issuer } from '#src/tenants/nkey.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import { welcomeText, type DevelopmentAccess } from './welcome.ts';

/** The organization that a start with an embedded event store creates. */
const DEV = { id: 'dev', name: 'Development', tier: 'max' } as const;
const DEV_KEY = { keyId: 'key_dev', role: 'owner', userId: 'dev' } as const;
const DEV_KEY_FILE = 'dev-api-key';

/** The started service; `welcome` is the text for the terminal, if everything is embedded. */
export type Started = Service & { welcome: string | null };

/**
 * Starts the service: locks the data folder, installs missing programs, starts the embedded servers
 * and the roles. The first browsers are then being launched (`warm`). `print` gets a line for each
 * step that takes long. If `ending` aborts meanwhile, its reason is thrown.
 * @throws MissingProgram, DataDirInUse, DataDirNotWritable, PortTaken, BadConfig: each message
 *   names the fault
 */
export async function start(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  ending: AbortSignal,
): Promise<Started> {
  await using stack = new AsyncDisposableStack();
  const { dataDir } = config;
  if (config.natsUrl !== null && config.masterKey === null)
    throw new BadConfig(
      'MASTER_KEY: needed beside NATS_URL, the same in every process of the service',
    );
  stack.use(await lockDataDir(dataDir));
  await assertPortsFree(portsOf(config));
  const { programs, servers } = await findPrograms(config, print);
  ending.throwIfAborted();
  const issuer = await findIssuer(config);
  const embedded = stack.use(
    await startEmbedded({
      dataDir,
      ...servers,
      nats: { ...natsPlace(config), issuer: issuer?.publicKey ?? '' },
      onEvent: (event) => log.info(event, 'embedded server changed'),
    }),
  );
  const masterKey =
    config.masterKey ?? (await loadOrCreateSecret(dataDir, 'master-key', newSecret));
  const natsUrl = config.natsUrl ?? embedded.natsUrl ?? '';
  const redisUrl = config.redisUrl ?? embedded.redisUrl ?? '';
  const serverId = await loadOrCreateSecret(dataDir, 'server-id', () => newId('srv'));
  const service = stack.use(
    await compose({
      config,
      log,
      natsUrl,
      redisUrl,
      masterKey,
      serverId,
      programs,
      print,
      issuer,
      ending,
    }),
  );
  const { access, issuedAt } = await openDevelopment(config, service, log, print);
  stack.use(
    await writeRuntime(dataDir, {
      pid: process.pid,
      started_at: new Date().toISOString(),
      api_url: service.apiUrl,
      gateway_ws_url: service.gatewayWsUrl,
      gateway_wss_url: service.gatewayWssUrl,
      nats_url: natsUrl,
      tenant_nats_url: issuer === null ? null : tenantUrl(config, natsUrl),
      redis_url: redisUrl,
    }),
  );
  const all = stack.move();
  return {
    ...service,
    async warm() {
      const failure = await service.warm();
      if (failure !== null) log.error({ failure }, 'launch failed: no idle browser is ready');
      return failure;
    },
    missing: () => missingOf(service, issuedAt),
    welcome: access === null ? null : welcomeText(config, service, access),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The development key is missing until the API takes it: a user's first request has it. */
function missingOf(service: Service, issuedAt: number): string[] {
  const missing = service.missing();
  return service.appliesKeysOf(issuedAt) ? missing : [...missing, 'development key'];
}

function portsOf({ roles, api, gateway, telemetry }: Config) {
  const { host } = api;
  const { metricsPort } = telemetry;
  return [
    ...(metricsPort === null ? [] : [{ variable: 'METRICS_PORT', host, port: metricsPort }]),
    ...(roles.includes('api') ? [{ variable: 'PORT', host, port: api.port }] : []),
    ...(roles.includes('gateway')
      ? [
          { variable: 'GATEWAY_PORT', host, port: gateway.port },
          { variable: 'GATEWAY_TLS_PORT', host, port: gateway.tlsPort },
        ]
      : []),
  ];
}

/** Finds the programs that this process will run, and installs missing ones. */
async function findPrograms(config: Config, print: (line: string) => void) {
  const needsBrowsers = config.roles.includes('provisioner') && config.browsers.kind === 'process';
  const servers = {
    ...(config.natsUrl === null
      ? { natsServer: (await ensurePrograms(['nats-server'], print))['nats-server'] }
      : {}),
    ...(config.redisUrl === null
      ? { redisServer: (await ensurePrograms(['redis-server'], print))['redis-server'] }
      : {}),
  };
  if (!needsBrowsers) return { servers, programs: null };
  const found = await ensurePrograms(['chromium', 'Xtigervnc', 'vncpasswd'], print);
  const { chromium, Xtigervnc: xvnc, vncpasswd } = found;
  return { servers, programs: { chromium, xvnc, vncpasswd } };
}

/** Where the embedded nats-server listens: on loopback, unless NATS_PORT opens it to tenants. */
function natsPlace({ tenants, api }: Config) {
  const port = tenants.natsPort;
  return { port, host: port === null ? '127.0.0.1' : api.host };
}

/** The issuer that admits tenants: generated for an embedded server, else NATS_ISSUER_SEED. */
async function findIssuer({ dataDir, natsUrl, tenants }: Config): Promise<Issuer | null> {
  if (natsUrl !== null && tenants.issuerSeed === null) return null;
  const seed =
    tenants.issuerSeed ?? (await loadOrCreateSecret(dataDir, 'nats-issuer', newAccountSeed));
  const issuer = readIssuer(seed);
  if (issuer === null) throw new BadConfig('NATS_ISSUER_SEED: its checksum is wrong');
  return issuer;
}

/** The NATS address for tenants, without the service's own credentials. */
function tenantUrl({ tenants }: Config, natsUrl: string): string {
  return tenants.publicNatsUrl ?? natsUrl.replaceAll(/\/\/[^/@,]*@/g, '//');
}

/**
 * Creates the development organization and its key if the event store is embedded or DEV_API_KEY is
 * set. A revoked key stays revoked: a generated one is replaced, for DEV_API_KEY a warning is
 * logged.
 * @returns `access`: the key, or why there is none; null if no text is to be printed. `issuedAt`:
 * the sequence of the event that issued the key, or of a later one; 0 if none was issued.
 */
async function openDevelopment(
  config: Config,
  { context }: Service,
  log: Logger,
  print: (line: string) => void,
): Promise<{ access: DevelopmentAccess | null; issuedAt: number }> {
  const isEmbedded = config.natsUrl === null;
  const { dataDir, devApiKey: named } = config;
  // If each role has its own NATS user, only that of the api may append organization events.
  if (!isEmbedded && (named === null || !config.roles.includes('api')))
    return { access: null, issuedAt: 0 };
  const { credits } = config.tiers[DEV.tier];
  const issue = (apiKey: string) =>
    ensureOrganization(context, { ...DEV, credits }, { ...DEV_KEY, hash: hashKey(apiKey) }, () =>
      newMetadata('start'),
    );
  let apiKey = named ?? (await loadOrCreateSecret(dataDir, DEV_KEY_FILE, () => newApiKey(DEV.id)));
  let issued = await issue(apiKey);
  if (!isRejection(issued) && issued.outcome === 'revoked' && named === null) {
    print('The development key was revoked; a new one was generated.');
    apiKey = newApiKey(DEV.id);
    await replaceSecret(dataDir, DEV_KEY_FILE, apiKey);
    issued = await issue(apiKey);
  }
  if (!isRejection(issued) && issued.outcome === 'open')
    return { access: isEmbedded ? { apiKey } : null, issuedAt: issued.sequence };
  const refusal = isRejection(issued)
    ? `The key of the organization "${DEV.id}" was not issued: ${problemBody(issued).message}`
    : 'The key in DEV_API_KEY was revoked: set another one, or unset the variable.';
  log.warn(refusal);
  return { access: isEmbedded ? { refusal } : null, issuedAt: 0 };
}
