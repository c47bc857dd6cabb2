import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';
import type { LifecycleOptions } from '../lifecycle/bench-lifecycle.ts';
import { runApart } from '../run-apart.ts';
import { atLeast, atMost, summarize, type Verdict } from '../samples.ts';
import { untilIdle } from '../sessions.ts';
import type { ArenaRecord } from './harness-types.ts';
import type { HarnessRun } from './run-harness.ts';

/** As published: a hundred sessions one by one, and a hundred in batches of ten. */
const RUNS = Number(process.env['BROWSERARENA_RUNS'] ?? 100);
const AT_ONCE = [1, 10] as const;
const PROGRAM = fileURLToPath(new URL('run-harness.ts', import.meta.url));
const WITHIN_MS = 1_800_000;
/** A small page, like the one that the published runs open. */
const PAGE = `<!doctype html><title>Example</title>${'<p>This page is for tests. '.repeat(20)}`;
const PARTS = {
  create: 'session_creation_ms',
  connect: 'session_connect_ms',
  goto: 'page_goto_ms',
  release: 'session_release_ms',
} as const;

type Figures = { runs: number; success: number } & Record<
  keyof typeof PARTS | 'total',
  { p50: number; p95: number }
>;

/**
 * BrowserArena's own harness, out of the checkout that BROWSERARENA names, against the service and
 * against bare Chromium, in turns; and the figures of hosted services that the checkout has.
 */
export async function benchBrowserArena(
  { env, programs, print }: LifecycleOptions,
  checkout = process.env['BROWSERARENA'] ?? '',
): Promise<Verdict[]> {
  if (!existsSync(join(checkout, 'src/benchmarks/hello-browser/run.ts'))) {
    print('left out: BROWSERARENA names no checkout of nottelabs/browserarena');
    return [];
  }
  const folder = await mkdtemp(join(tmpdir(), 'bss-browserarena-'));
  const site = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end(PAGE);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  try {
    await using service = await startService({ ...env, POOL_MAX: '20' });
    const page =
      process.env['BROWSERARENA_URL'] ??
      `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
    const ours = { kind: 'service', url: service.apiUrl, apiKey: DEV_KEY } as const;
    print(header('milliseconds, p50 / p95'));
    const verdicts: Verdict[] = [];
    for (const concurrency of AT_ONCE) {
      const shared = { checkout, page, concurrency, batches: Math.ceil(RUNS / concurrency) };
      const bare = await measure(folder, 'bare', {
        ...shared,
        provider: { kind: 'bare', ...programs },
      });
      await untilIdle(service, 1);
      const measured = await measure(folder, 'service', { ...shared, provider: ours });
      print(line(`bare headful Chromium, ${concurrency} at once`, bare));
      print(line(`the service, ${concurrency} at once`, measured));
      verdicts.push(...compare(measured, bare, concurrency));
    }
    verdicts.push(atMost('browserarena: sessions left open', await openOf(service), 0));
    await printPublished(checkout, print);
    return verdicts;
  } finally {
    site.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function compare(ours: Figures, bare: Figures, concurrency: number): Verdict[] {
  const name = `browserarena: ${concurrency} at once`;
  return [
    atLeast(`${name}, success`, ours.success, 1),
    atMost(`${name}, a session ÷ bare, p50`, ours.total.p50 / bare.total.p50, 1),
    atMost(`${name}, a session ÷ bare, p95`, ours.total.p95 / bare.total.p95, 1),
  ];
}

async function measure(
  folder: string,
  name: string,
  run: Omit<HarnessRun, 'out'>,
): Promise<Figures> {
  const place = join(folder, `${name}-${run.concurrency}`);
  await mkdir(place);
  const out = join(place, 'results.jsonl');
  await runApart([PROGRAM, JSON.stringify({ ...run, out })], {}, WITHIN_MS);
  return await read(out);
}

/** Failed sessions count for the success alone, as on its leaderboard. */
async function read(path: string): Promise<Figures> {
  const text = await readFile(path, 'utf8');
  const lines = text.split('\n').filter((one) => one !== '');
  const records = lines.map((one) => JSON.parse(one) as ArenaRecord);
  const good = records.filter(({ success }) => success);
  const part = (name: keyof typeof PARTS) =>
    summarize(good.map((record) => record[PARTS[name]] ?? Number.NaN));
  const totals = good.map((record) =>
    Object.values(PARTS).reduce((sum, name) => sum + (record[name] ?? Number.NaN), 0),
  );
  return {
    runs: records.length,
    success: good.length / records.length,
    create: part('create'),
    connect: part('connect'),
    goto: part('goto'),
    release: part('release'),
    total: summarize(totals.filter((total) => !Number.isNaN(total))),
  };
}

async function openOf(service: RunningService): Promise<number> {
  const { body } = await service.request('GET', '/api/sessions?status=active');
  return body.total as number;
}

/** The newest published results of each provider. */
async function printPublished(checkout: string, print: (line: string) => void): Promise<void> {
  const root = join(checkout, 'results', 'hello-browser');
  if (!existsSync(root)) return;
  print(header('as published, from machines and to regions of their own'));
  for (const provider of (await readdir(root)).toSorted()) {
    const days = (await readdir(join(root, provider))).filter((day) => /^\d{4}-/.test(day));
    const day = days.toSorted().at(-1) ?? '';
    for (const concurrency of AT_ONCE) {
      const path = join(root, provider, day, `c${concurrency}`, 'results.jsonl');
      if (existsSync(path))
        print(line(`${provider}, ${day}, ${concurrency} at once`, await read(path)));
    }
  }
}

function header(about: string): string {
  const names = [...Object.keys(PARTS), 'total', 'runs', 'success'];
  return `${about.padEnd(56)}${names.map((name) => name.padStart(14)).join('')}`;
}

function line(name: string, figures: Figures): string {
  const parts = [...(Object.keys(PARTS) as (keyof typeof PARTS)[]), 'total' as const];
  const cells = parts.map((part) => {
    const { p50, p95 } = figures[part];
    return `${p50.toFixed(0)} / ${p95.toFixed(0)}`;
  });
  const all = [...cells, `${figures.runs}`, `${(figures.success * 100).toFixed(1)} %`];
  return `${name.padEnd(56)}${all.map((cell) => cell.padStart(14)).join('')}`;
}
