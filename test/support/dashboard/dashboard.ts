import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Locator, type Page, type Request } from 'playwright-core';
import { expect, TestRunner } from 'vitest';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Where the tests leave pictures of the pages, to be looked at. */
const PICTURES = join(ROOT, '.tools', 'pictures');
const HEIGHT = 900;
/**
 * How Chromium fails what it loads when an interface of the machine comes or goes, which tests of
 * Docker networks cause. The dashboard tries again; only its first script has nothing that would.
 */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
/** What a module says of it that imports another; the viewer page then tries again. */
const IMPORT_FAILED = 'Failed to fetch dynamically imported module';
const LOADS_MAX = 5;
const WITHIN_MS = 120_000;

export const OPERATOR_TOKEN = 'test-token-of-the-operator';

/** What each page is tested in: `it.each(LOOKS)('%s', (look) => …)`. */
export const LOOKS = (['light', 'dark'] as const).flatMap((theme) =>
  [390, 1440].map((width) => ({ theme, width, toString: () => `${theme}, ${width} px` })),
);
export type Look = { theme: 'light' | 'dark'; width: number };

type Opened = {
  page: Page;
  /** Errors of the page, and violations of its policy. */
  faults: string[];
} & AsyncDisposable;

type Opening = Partial<Look> & {
  /** The key to sign in with; default: the owner's; null: signed out. */
  key?: string | null;
  /** Whether the operator's token is given, too. */
  isOperator?: boolean;
  /** Where the page is, if not straight at the service. */
  origin?: string;
};

/** The whole service with a real Chromium that opens its dashboard; one for each file of tests. */
export type Dashboard = {
  service: RunningService;
  /** Opens a page in a tab of its own, signed in. */
  open(path: string, opening?: Opening): Promise<Opened>;
  create(body: object): Promise<{ id: string }>;
  /** A new key of a user of the organization. */
  keyOf(role: string, user?: string): Promise<string>;
} & AsyncDisposable;

/** @param env variables of the service; its browsers are simulated unless they say otherwise */
export async function startDashboard(env: Record<string, string> = {}): Promise<Dashboard> {
  await mkdir(PICTURES, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const service = stack.use(
    await startService({
      POOL_MIN_IDLE: '2',
      POOL_MAX_IDLE: '4',
      POOL_MAX: '40',
      OPERATOR_TOKEN,
      TIERS: JSON.stringify({
        max: { requests_per_minute: 100_000 },
        free: { requests_per_minute: 100_000 },
      }),
      ...env,
    }),
  );
  const executablePath = process.env['CHROMIUM'];
  if (executablePath === undefined) throw new Error('CHROMIUM: set before all tests');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  stack.defer(() => browser.close());
  const all = stack.move();
  return {
    service,
    async open(path, { theme = 'light', width = 1440, key = DEV_KEY, ...more } = {}) {
      const context = await browser.newContext({
        colorScheme: theme,
        viewport: { width, height: HEIGHT },
      });
      // For what hangs: a page of a busy machine is slow.
      context.setDefaultTimeout(WITHIN_MS);
      const page = await context.newPage();
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(error.message));
      let hasChanged = false;
      page.on('requestfailed', (request) => {
        hasChanged ||= request.failure()?.errorText === NETWORK_CHANGED;
      });
      page.on('console', (message) => {
        const text = message.text();
        const isOfChange =
          text.includes(NETWORK_CHANGED) || (hasChanged && text.includes(IMPORT_FAILED));
        if (message.type() === 'error' && !isOfChange)
          faults.push(`${text} ${message.location().url}`);
      });
      const token = JSON.stringify(OPERATOR_TOKEN);
      if (more.isOperator)
        await page.addInitScript(`sessionStorage.setItem('bss-operator', ${token})`);
      const origin = more.origin ?? service.apiUrl;
      await goTo(page, origin + path + (key === null ? '' : `#key=${key}`));
      let text = '';
      // A benchmark has no test, and a tab that all tests of a file use has none of its own.
      TestRunner.getCurrentTest()?.context.onTestFailed(() =>
        console.error(`${path} showed:\n${text}\nFaults: ${faults.join('; ')}`),
      );
      return {
        page,
        faults,
        async [Symbol.asyncDispose]() {
          text = await page.innerText('body', { timeout: 1_000 }).catch(String);
          await context.close();
        },
      };
    },
    async create(body) {
      const answer = await service.request('POST', '/api/sessions', body);
      if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body as { id: string };
    },
    async keyOf(role, user) {
      const answer = await service.request('POST', '/api/keys', { role, user_id: user });
      if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body.api_key as string;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Opens the page, again if the network changed while its first files were loaded. */
export async function goTo(page: Page, url: string): Promise<void> {
  let isBroken = false;
  const notIfChanged = (error: Error) => {
    if (!error.message.includes(NETWORK_CHANGED)) throw error;
    isBroken = true;
  };
  const note = (request: Request) => {
    isBroken ||=
      request.failure()?.errorText === NETWORK_CHANGED && /\/assets\//.test(request.url());
  };
  page.on('requestfailed', note);
  await page.goto(url).catch(notIfChanged);
  for (let loads = 1; isBroken && loads < LOADS_MAX; loads += 1) {
    isBroken = false;
    // Going to the page that is shown would only change its fragment.
    const isShown = page.url().startsWith('http');
    await (isShown ? page.reload() : page.goto(url)).catch(notIfChanged);
  }
  page.off('requestfailed', note);
}

/** A session's status in a list, once it is the given one. */
export const statusOf = (page: Page, id: string, status: string): Locator =>
  page.locator(`[data-id="${id}"] .status`, { hasText: status });

/** Saves a picture; axe must find nothing, and the page must not be wider than its window. */
export async function inspect(page: Page, name: string, { theme, width }: Look): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`) });
  const findings = async () => {
    const { violations } = await new AxeBuilder({ page }).analyze();
    return [name, violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])];
  };
  // On a busy machine all links of a dark page had the colours of a light one for a moment.
  await expect.poll(findings).toEqual([name, []]);
  const isWide = 'document.documentElement.scrollWidth > innerWidth';
  expect([name, await page.evaluate(isWide)]).toEqual([name, false]);
}
