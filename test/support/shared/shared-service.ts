import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Role, Tier } from '#events/organization.ts';
import { newId } from '#src/kernel/ids.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { giveCertificate, isReady, settingsOf } from '#test/support/service/service-process.ts';
import {
  DEV_KEY,
  eventually,
  readRuntime,
  request,
  type Service,
} from '#test/support/service/service.ts';

const KEEPER = fileURLToPath(new URL('./keeper.ts', import.meta.url));
const READY_WITHIN_MS = 180_000;
export const OPERATOR_TOKEN = 'operator-4711-token-of-the-tests';
/** Requests a minute of each tier: a shared service tests no rate limit. */
const PLENTY = { requests_per_minute: 1_000_000 };
const CREDITS = 1_000_000;

/** An organization of a test, with its owner's key. */
export type Tenant = { id: string; key: string; owner: ApiClient };

/** The service of this process of tests, for the tests of one file. */
export type SharedService = {
  service: Service;
  log: ServiceLog;
  /** A client with the development key, which belongs to no test. */
  anybody: ApiClient;
  /** A new organization: no other test has its sessions, events, keys, credits and limits. */
  organization(tier?: Tier, credits?: number): Promise<Tenant>;
  /** A client with a new key of an organization. */
  clientOf(organizationId: string, role: Role): Promise<ApiClient>;
} & AsyncDisposable;

let running: Promise<Service> | null = null;

/**
 * The service that all test files of this process share: simulated browsers, plenty of requests a
 * minute. Disposal stops the sessions that the file has left open; the service runs until this
 * process ends. A test that restarts, fills or configures a service starts its own.
 */
export async function shareService(): Promise<SharedService> {
  const service = await (running ??= start());
  await using stack = new AsyncDisposableStack();
  const log = stack.use(await openLog(service));
  const anybody = await connectApi(service.apiUrl);
  const owners: ApiClient[] = [];
  const clientOf = async (id: string, role: Role) =>
    anybody.as(await log.issueKey(id, role, anybody));
  stack.defer(async () => {
    for (const owner of owners) await stopAll(owner);
  });
  const all = stack.move();
  return {
    service,
    log,
    anybody,
    clientOf,
    async organization(tier = 'pro', credits = CREDITS) {
      const id = newId('organization');
      await log.register(id, tier, credits);
      const key = await log.issueKey(id, 'owner', anybody);
      const owner = anybody.as(key);
      owners.push(owner);
      return { id, key, owner };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function stopAll(owner: ApiClient): Promise<void> {
  const filter = { created_before: new Date(Date.now() + 60_000).toISOString() };
  const { status, body } = await owner.send('POST', '/api/sessions/stop', { body: { filter } });
  if (status !== 200) throw new Error(`open sessions were not stopped: ${JSON.stringify(body)}`);
}

async function start(): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-shared-'));
  const dataDir = join(folder, 'data');
  giveCertificate(dataDir);
  const settings = await settingsOf(dataDir, {
    DEV_API_KEY: DEV_KEY,
    OPERATOR_TOKEN,
    TIERS: JSON.stringify({ free: PLENTY, pro: PLENTY, max: PLENTY }),
    POOL_MAX: '60',
    POOL_MIN_IDLE: '4',
  });
  const keeper = spawn(process.execPath, [KEEPER, folder], {
    env: { ...process.env, ...settings },
    stdio: ['pipe', 'ignore', 'inherit'],
    // A signal to this process's group, as Ctrl-C, is not for the service.
    detached: true,
  });
  const keepers = process.env['TEST_KEEPERS'];
  if (keepers !== undefined) writeFileSync(join(keepers, String(keeper.pid)), '');
  let isGone = false;
  keeper.once('exit', () => {
    isGone = true;
    // It has reported why. The next file has a new one.
    running = null;
  });
  keeper.unref();
  const outputFile = join(folder, 'output');
  const output = () => (existsSync(outputFile) ? readFileSync(outputFile, 'utf8') : '');
  await eventually(
    () => {
      if (isGone) throw new Error('the shared service did not start');
      return isReady(output());
    },
    'the shared service is ready',
    READY_WITHIN_MS,
  );
  const apiUrl = `http://127.0.0.1:${settings['PORT']}`;
  return {
    apiUrl,
    runtime: await readRuntime(dataDir),
    dataDir,
    pid: Number(readFileSync(join(folder, 'pid'), 'utf8')),
    output,
    request: (method, path, body, headers) => request(apiUrl + path, method, body, headers),
  };
}
