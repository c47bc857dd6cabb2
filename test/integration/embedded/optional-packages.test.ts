import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { startService } from '#test/support/service/service.ts';

/** The sources: what is built from them has OpenTelemetry in it. */
const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const BSS = fileURLToPath(new URL('../../../src/apps/cli/bss.ts', import.meta.url));

/** Node's own refusal of a package that is not installed, for all that are optional. */
const WITHOUT = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const optional = /^@(duckdb|kubernetes|opentelemetry)[/](?!api$)/;
  registerHooks({ resolve(specifier, context, next) {
    if (!optional.test(specifier)) return next(specifier, context);
    const name = specifier.split('/').slice(0, 2).join('/');
    const why = "Cannot find package '" + name + "' imported from ";
    const error = new Error(why + context.parentURL);
    throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
  } });
`)}`;

it('the packages of features that few processes use are optional', () => {
  const scopes = Object.keys(packageJson.optionalDependencies).map((name) => name.split('/')[0]);
  expect(new Set(scopes)).toEqual(new Set(['@duckdb', '@kubernetes', '@opentelemetry']));
  const others = Object.keys(packageJson.dependencies);
  // Which prom-client needs.
  expect(others.filter((name) => scopes.includes(name.split('/')[0]))).toEqual([
    '@opentelemetry/api',
  ]);
});

it('the service works without them, and bss sql says which is missing and how to install it', async () => {
  await using service = await startService({ NODE_OPTIONS: WITHOUT });
  const created = await service.request('POST', '/api/sessions', { duration: '10m' });
  expect([created.status, created.body.status]).toEqual([201, 'active']);

  const { code, said } = await bssSql(service.dataDir);
  expect(said).toContain('bss sql needs the npm package @duckdb/node-api, which is not installed');
  const version = packageJson.optionalDependencies['@duckdb/node-api'];
  expect(said).toContain(`npm install --no-save @duckdb/node-api@${version}`);
  expect(code).not.toBe(0);
});

const NAMED = [
  {
    feature: 'BROWSERS=kubernetes',
    name: '@kubernetes/client-node',
    env: { BROWSERS: 'kubernetes', BROWSER_IMAGE: 'a:1' },
  },
  {
    feature: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    name: '@opentelemetry/',
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
  },
] as const;

it.each(NAMED)(
  'a start with $feature says which package is missing, and how to install it',
  async ({ feature, name, env }) => {
    const started = startService({ ...env, NODE_OPTIONS: WITHOUT }, { mayFail: true, main: MAIN });
    const failure = await started.then(
      () => 'it started',
      (error: unknown) => String(error),
    );
    expect(failure).toContain(`PackageMissing: ${feature} needs the npm package ${name}`);
    expect(failure).toContain(`npm install --no-save ${name}`);
  },
);

async function bssSql(dataDir: string): Promise<{ code: number; said: string }> {
  const called = spawn(process.execPath, [BSS, 'sql', 'SELECT 1'], {
    env: { ...process.env, NODE_OPTIONS: WITHOUT, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [called.stdout, called.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(called, 'close')) as [number];
  return { code, said };
}
