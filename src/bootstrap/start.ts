import { EVENTS_STREAM } from '#events/subjects.ts';
import { compose, type Service } from './compose.ts';
import { BadConfig } from '#src/config/parse.ts';
import type { Config } from '#src/config/config.ts';
import { lockDataDir } from '#src/embedded/data-dir.ts';
import { startEmbedded } from '#src/embedded/embedded.ts';
import { assertPortsFree } from '#src/embedded/ports.ts';
import { ensurePrograms } from '#src/embedded/programs.ts';
import { writeRuntime } from '#src/embedded/runtime-file.ts';
import { keptSecret, newSecret, replaceSecret } from '#src/embedded/secrets.ts';
import { problemBody } from '#src/errors.ts';
import { hashKey, newApiKey, newId } from '#src/ids.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { ensureOrganization } from '#src/commands/register-organization.ts';
import { newAccountSeed, readIssuer, type Issuer } from '#src/tenants/nkey.ts';
import type { Log } from '#src/telemetry/logger.ts';
import { welcomeText, type DevelopmentAccess } from './welcome.ts';

/** The organization that the embedded start makes. */
const DEV = { id: 'dev', name: 'Development', tier: 'max' } as const;
const DEV_KEY = { keyId: 'key_dev', role: 'owner', userId: 'dev' } as const;
const DEV_KEY_FILE = 'dev-api-key';

/** The service, ready to be used; `welcome` is for the terminal, where everything is embedded. */
export type Started = Service & { welcome: string | null };

/**
 * From a configuration to a running service: the data folder, the programs it lacks, the embedded
 * servers and the roles; its first browsers are under way then (`warm`). Each step says what it
 * does where that takes time. Where `ending` aborts meanwhile, what it was aborted with is thrown.
 * @throws MissingProgram, DataDirInUse, DataDirNotWritable, PortTaken, …: each names what is wrong
 */
export async function start(
  config: Config,
  log: Log,
  say: (line: string) => void,
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
  const { programs, servers } = await findPrograms(config, say);
  ending.throwIfAborted();
  const issuer = await findIssuer(config);
  const embedded = stack.use(
    await startEmbedded({
      dataDir,
      ...servers,
      nats: { ...natsPlace(config), issuer: issuer?.publicKey ?? '' },
      onEvent: (event) => log.info(event, 'embedded'),
    }),
  );
  const masterKey = config.masterKey ?? (await keptSecret(dataDir, 'master-key', newSecret));
  const natsUrl = config.natsUrl ?? embedded.natsUrl ?? '';
  const redisUrl = config.redisUrl ?? embedded.redisUrl ?? '';
  const serverId = await keptSecret(dataDir, 'server-id', () => newId('srv'));
  const service = stack.use(
    await compose({
      config,
      log,
      natsUrl,
      redisUrl,
      masterKey,
      serverId,
      programs,
      say,
      issuer,
      ending,
      onLogReady: () => embedded.stageBatches(EVENTS_STREAM),
    }),
  );
  const access = await openDevelopment(config, service, log, say);
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
      if (failure !== null) log.error({ failure }, 'no browser could be launched');
      return failure;
    },
    welcome: access === null ? null : welcomeText(config, service, access),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
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

/** Only what this process will run is looked for, and installed where it is missing. */
async function findPrograms(config: Config, say: (line: string) => void) {
  const needsBrowsers = config.roles.includes('provisioner') && config.browsers.kind === 'process';
  const servers = {
    ...(config.natsUrl === null
      ? { natsServer: (await ensurePrograms(['nats-server'], say))['nats-server'] }
      : {}),
    ...(config.redisUrl === null
      ? { redisServer: (await ensurePrograms(['redis-server'], say))['redis-server'] }
      : {}),
  };
  if (!needsBrowsers) return { servers, programs: null };
  const found = await ensurePrograms(['chromium', 'Xtigervnc', 'vncpasswd'], say);
  const { chromium, Xtigervnc: xvnc, vncpasswd } = found;
  return { servers, programs: { chromium, xvnc, vncpasswd } };
}

/**
 * Where the embedded nats-server listens: for this machine alone, unless tenants are to find it.
 */
function natsPlace({ tenants, api }: Config) {
  const port = tenants.natsPort;
  return { port, host: port === null ? '127.0.0.1' : api.host };
}

/** Who lets tenants in: made and kept for an embedded server, given beside one that is not. */
async function findIssuer({ dataDir, natsUrl, tenants }: Config): Promise<Issuer | null> {
  if (natsUrl !== null && tenants.issuerSeed === null) return null;
  const seed = tenants.issuerSeed ?? (await keptSecret(dataDir, 'nats-issuer', newAccountSeed));
  const issuer = readIssuer(seed);
  if (issuer === null) throw new BadConfig('NATS_ISSUER_SEED: its checksum does not fit');
  return issuer;
}

/** The address that tenants are told, without the service's own credentials. */
function tenantUrl({ tenants }: Config, natsUrl: string): string {
  return tenants.publicNatsUrl ?? natsUrl.replaceAll(/\/\/[^/@,]*@/g, '//');
}

/**
 * The development organization with its key: where the log is embedded, or a key was given. One
 * that was revoked stays so: where the start had made it, it makes another; where the operator has
 * named it, it says so.
 * @returns null where there is nothing for the terminal; else the key, or why none opens it
 */
async function openDevelopment(
  config: Config,
  { desk }: Service,
  log: Log,
  say: (line: string) => void,
): Promise<DevelopmentAccess | null> {
  const isEmbedded = config.natsUrl === null;
  const { dataDir, devApiKey: named } = config;
  // Where roles have users of their own at NATS, the api's may write of organizations.
  if (!isEmbedded && (named === null || !config.roles.includes('api'))) return null;
  const { credits } = config.tiers[DEV.tier];
  const issue = (apiKey: string) =>
    ensureOrganization(desk, { ...DEV, credits }, { ...DEV_KEY, hash: hashKey(apiKey) }, () =>
      causeBy('start'),
    );
  let apiKey = named ?? (await keptSecret(dataDir, DEV_KEY_FILE, () => newApiKey(DEV.id)));
  let outcome = await issue(apiKey);
  if (outcome === 'revoked' && named === null) {
    say('The development key was revoked; a new one has been made.');
    apiKey = newApiKey(DEV.id);
    await replaceSecret(dataDir, DEV_KEY_FILE, apiKey);
    outcome = await issue(apiKey);
  }
  if (outcome === 'open') return isEmbedded ? { apiKey } : null;
  const refusal =
    outcome === 'revoked'
      ? 'The key in DEV_API_KEY was revoked and stays refused: name another, or leave it out.'
      : `The key of the organization "${DEV.id}" was not issued: ${problemBody(outcome).message}`;
  log.warn(refusal);
  return isEmbedded ? { refusal } : null;
}
