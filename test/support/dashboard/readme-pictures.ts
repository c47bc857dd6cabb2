import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { connect } from 'puppeteer-core';
import { createClient } from '#src/apps/client/client.ts';
import { buildDashboard } from '#src/start/embedded/build/dashboard.mjs';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { startDashboard, type Dashboard, type Look } from './dashboard.ts';

/** Makes the pictures of the README (`npm run pictures`): real browsers, made-up pages. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PICTURES = join(ROOT, 'src', 'apps', 'dashboard', 'pictures');
const SCENES = [
  { name: 'price-watch', team: 'shop', colour: '#0b7285', title: 'Prices', text: '1,204 offers' },
  {
    name: 'sign-up-agent',
    team: 'growth',
    colour: '#862e9c',
    title: 'Sign up',
    text: 'Step 2 of 3',
  },
  {
    name: 'checkout-test',
    team: 'shop',
    colour: '#2b8a3e',
    title: 'Checkout',
    text: 'Order placed',
  },
  { name: 'nightly-report', team: 'data', colour: '#a61e4d', title: 'Report', text: 'November' },
  {
    name: 'invoice-agent',
    team: 'data',
    colour: '#364fc7',
    title: 'Invoices',
    text: '31 are open',
  },
  { name: 'visa-slots', team: 'growth', colour: '#d9480f', title: 'Visa', text: 'No slot is free' },
  { name: 'login-check', team: 'shop', colour: '#495057', title: 'Sign in', text: 'Welcome back' },
];
const SIZE = { width: 1280, height: 720 };

await buildDashboard(ROOT, console.log);
const { chromium } = await ensurePrograms(['chromium', 'Xtigervnc'], console.log);
process.env['CHROMIUM'] ??= chromium;
await using dashboard = await startDashboard({
  BROWSERS: 'process',
  POOL_MIN_IDLE: '1',
  POOL_MAX: '9',
});
const client = createClient({ url: dashboard.service.apiUrl, apiKey: DEV_KEY });
const sessions = [];
for (const scene of SCENES) sessions.push(await openScene(scene));
const [, asking, ended] = sessions;
await client.sessions.extend(ended?.id ?? '', '30m');
await client.sessions.stop(ended?.id ?? '');
await picture(dashboard, '/', 'sessions', 'light', (page) =>
  page.locator('.row', { hasText: 'stopped' }).getByText('user', { exact: true }).waitFor(),
);
await picture(dashboard, '/wall', 'wall', 'dark', (page) =>
  eventually(async () => (await page.locator('main img').count()) === 6, 'six screens are shown'),
);
await picture(dashboard, `/sessions/${ended?.id}`, 'session', 'dark', (page) =>
  page.getByText('Session stopped').first().waitFor(),
);
const help = { instructions: 'Solve the puzzle of the form, then continue.', timeout: '10m' };
const path = `/api/sessions/${asking?.id}/handoffs`;
await dashboard.service.request('POST', path, help);
await picture(dashboard, '/handoffs', 'handoff', 'light', async (page) => {
  await page.getByRole('button', { name: 'Take' }).click();
  await page.getByText('Connected', { exact: true }).waitFor();
});

/** A session that shows a made-up page. */
async function openScene({ name, team, colour, title, text }: (typeof SCENES)[number]) {
  const session = await client.sessions.create({ session_name: name, labels: { team } });
  const browser = await connect({
    browserWSEndpoint: session.cdp_url ?? '',
    defaultViewport: null,
  });
  const [page] = await browser.pages();
  const html = `<title>${title}</title><style>
    * { margin: 0; font: 28px sans-serif }
    header, button { background: ${colour}; color: #fff; border: 0; padding: 12px 28px }
    header { font-size: 44px; padding: 28px 40px }
    p { margin: 32px 40px }
    input { padding: 12px; width: 60% }
    </style><header>${title}</header><p>${text}</p>
    <p><input value="someone@example.org"></p><p><button>Continue</button></p>`;
  await page?.goto(`data:text/html,${encodeURIComponent(html)}`);
  await browser.disconnect();
  return session;
}

async function picture(
  { open }: Dashboard,
  path: string,
  name: string,
  theme: Look['theme'],
  isReady: (page: Page) => Promise<unknown>,
) {
  await using tab = await open(path, { theme, width: SIZE.width });
  await tab.page.setViewportSize(SIZE);
  await isReady(tab.page);
  await tab.page.screenshot({ path: join(PICTURES, `${name}.png`) });
  console.log(`${name}.png`);
}
