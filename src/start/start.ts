import { compose, type Service } from './compose.ts';
import { BadConfig } from '#src/kernel/config/parse.ts';
import type { Config } from '#src/kernel/config/config.ts';
import { lockDataDir } from '#src/start/embedded/data-dir.ts';
import { startEmbedded } from '#src/start/embedded/embedded.ts';
import { assertPortsFree } from '#src/start/embedded/ports.ts';
import {
  ensurePrograms,
  findProgram,
  type ProgramName,
} from '#src/start/embedded/install/programs.ts';
import { writeRuntime } from '#src/start/embedded/runtime-file.ts';
import { loadOrCreateSecret, newSecret } from '#src/start/embedded/secrets.ts';
import { newId } from '#src/kernel/ids.ts';
import { parseMasterKeys } from '#src/kernel/master-keys.ts';
import { features as allFeatures } from '#src/features/all.ts';
import type { Feature } from '#src/features/feature.ts';
import { newAccountSeed, readIssuer, type Issuer } from '#src/features/nats-tenants/nkey.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { welcomeText } from './welcome.ts';

/** The started service; `welcome` is the text for the terminal, if everything is embedded. */
export type Started = Service & { welcome: string | null };

/**
 * Starts the service: locks the data folder, installs missing programs, starts the embedded servers
 * and the roles. The first browsers are then being launched (`warm`). `print` gets a line for each
 * step that takes long. If `ending` aborts meanwhile, its reason is thrown. `features` are the
 * optional parts.
 * @throws MissingProgram, DataDirInUse, DataDirNotWritable, PortTaken, BadConfig: each message
 *   names the fault
 */
export async function start(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  ending: AbortSignal,
  features: readonly Feature[] = allFeatures,
): Promise<Started> {
  await using stack = new AsyncDisposableStack();
  const { dataDir } = config;
  if (config.natsUrl !== null && config.masterKey === null)
    throw new BadConfig(
      'MASTER_KEY: needed beside NATS_URL, the same in every process of the service',
    );
  refuseUnisolated(config.browsers, log);
  stack.use(await lockDataDir(dataDir));
  await assertPortsFree(portsOf(config));
  const { programs, servers } = await findPrograms(config, print, ending);
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
  const natsUrl = config.natsUrl ?? embedded.natsUrl ?? '';
  const redisUrl = config.redisUrl ?? embedded.redisUrl ?? '';
  const kept = await findKept(config);
  const service = stack.use(
    await compose({
      config,
      log,
      natsUrl,
      redisUrl,
      ...kept,
      programs,
      print,
      issuer,
      ending,
      features,
    }),
  );
  stack.use(
    await writeRuntime(dataDir, {
      ...runtimeOf(service),
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
    welcome: welcomeText(
      config,
      service,
      config.operatorToken === null ? kept.operatorToken : null,
    ),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function runtimeOf({ apiUrl, gatewayWsUrl, gatewayWssUrl }: Service) {
  return {
    pid: process.pid,
    started_at: new Date().toISOString(),
    api_url: apiUrl,
    gateway_ws_url: gatewayWsUrl,
    gateway_wss_url: gatewayWssUrl,
  };
}

const NOT_ISOLATED =
  'browsers run as processes of this machine without isolation: a page can read what the ' +
  'service’s user can read, MASTER_KEY included';

/** @throws BadConfig where browsers that are not isolated need the operator's word */
function refuseUnisolated({ unisolated }: Config['browsers'], log: Logger): void {
  if (unisolated === null) return;
  if (unisolated === 'refused')
    throw new BadConfig(
      `BROWSERS: ${NOT_ISOLATED}. Set BROWSERS=docker; ALLOW_UNISOLATED=yes runs them all the same`,
    );
  log.warn({ unisolated }, NOT_ISOLATED);
}

function portsOf({ roles, api, gateway, telemetry }: Config) {
  const { host, operatorPort } = api;
  const { metricsPort } = telemetry;
  return [
    ...(metricsPort === null ? [] : [{ variable: 'METRICS_PORT', host, port: metricsPort }]),
    ...(roles.includes('api') ? [{ variable: 'PORT', host, port: api.port }] : []),
    ...(roles.includes('api') && operatorPort !== null
      ? [{ variable: 'OPERATOR_PORT', host, port: operatorPort }]
      : []),
    ...(roles.includes('gateway')
      ? [
          { variable: 'GATEWAY_PORT', host, port: gateway.port },
          { variable: 'GATEWAY_TLS_PORT', host, port: gateway.tlsPort },
        ]
      : []),
  ];
}

/** Finds the programs that this process will run, and installs missing ones. */
async function findPrograms(config: Config, print: (line: string) => void, ending: AbortSignal) {
  const needsBrowsers = config.roles.includes('provisioner') && config.browsers.kind === 'process';
  const names: ProgramName[] = [
    ...(config.natsUrl === null ? (['nats-server'] as const) : []),
    ...(config.redisUrl === null ? (['redis-server'] as const) : []),
    ...(needsBrowsers ? (['chromium', 'Xtigervnc'] as const) : []),
  ];
  // All at once: what needs root is asked for once.
  const found: Partial<Record<ProgramName, string>> = await ensurePrograms(names, print, ending);
  const { 'nats-server': natsServer, 'redis-server': redisServer } = found;
  const servers = {
    ...(natsServer === undefined ? {} : { natsServer }),
    ...(redisServer === undefined ? {} : { redisServer }),
  };
  const { chromium, Xtigervnc: xvnc } = found;
  if (chromium === undefined || xvnc === undefined) return { servers, programs: null };
  // Without it sessions have no WebDriver.
  const chromedriver = await findProgram('chromedriver');
  return { servers, programs: { chromium, xvnc, chromedriver } };
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

/** What is generated and kept in the data folder, where the configuration does not give it. */
async function findKept(config: Config) {
  const { dataDir } = config;
  const masterKey =
    config.masterKey ?? (await loadOrCreateSecret(dataDir, 'master-key', newSecret));
  // Also where it has another name: the file stands for this folder in the server's lease.
  const serverId = await loadOrCreateSecret(dataDir, 'server-id', () => newId('srv'));
  return {
    masterKeys: parseMasterKeys(masterKey),
    operatorToken: await findOperatorToken(config),
    serverId: config.serverId ?? serverId,
  };
}

/** OPERATOR_TOKEN; with an embedded event store one that is generated and kept. */
async function findOperatorToken({ dataDir, natsUrl, operatorToken }: Config) {
  if (operatorToken !== null || natsUrl !== null) return operatorToken;
  return loadOrCreateSecret(dataDir, 'operator-token', newSecret);
}

/** The NATS address for tenants, without the service's own credentials. */
function tenantUrl({ tenants }: Config, natsUrl: string): string {
  return tenants.publicNatsUrl ?? natsUrl.replaceAll(/\/\/[^/@,]*@/g, '//');
}
