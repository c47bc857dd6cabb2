export type Snippet = { title: string; text: string };

/** A page that needs no network, so that the code shows its result wherever it runs. */
const PAGE = 'data:text/html,<title>It works</title>';

/** Code that drives the session's browser as it is copied. */
export function snippetsFor(id: string, cdpUrl: string, origin: string): Snippet[] {
  const url = JSON.stringify(cdpUrl);
  return [
    {
      title: 'Playwright',
      text: [
        '// npm install playwright-core; save it as drive.mjs; node drive.mjs',
        "import { chromium } from 'playwright-core';",
        '',
        `const browser = await chromium.connectOverCDP(${url});`,
        'const [context] = browser.contexts();',
        'const page = await context.newPage();',
        `await page.goto('${PAGE}');`,
        'console.log(await page.title());',
        'await browser.close(); // the connection: the session goes on',
      ].join('\n'),
    },
    {
      title: 'Puppeteer',
      text: [
        '// npm install puppeteer-core; save it as drive.mjs; node drive.mjs',
        "import puppeteer from 'puppeteer-core';",
        '',
        `const browser = await puppeteer.connect({ browserWSEndpoint: ${url} });`,
        'const page = await browser.newPage();',
        `await page.goto('${PAGE}');`,
        'console.log(await page.title());',
        'await browser.disconnect();',
      ].join('\n'),
    },
    {
      title: 'Python',
      text: [
        '# pip install playwright; save it as drive.py; python3 drive.py',
        'from playwright.sync_api import sync_playwright',
        '',
        'with sync_playwright() as playwright:',
        `    browser = playwright.chromium.connect_over_cdp(${url})`,
        '    page = browser.contexts[0].new_page()',
        `    page.goto('${PAGE}')`,
        '    print(page.title())',
      ].join('\n'),
    },
    {
      title: 'curl',
      text: [
        '# API_KEY is your key of the organization',
        `curl -s ${origin}/api/sessions/${id} -H "Authorization: Bearer $API_KEY"`,
      ].join('\n'),
    },
  ];
}
