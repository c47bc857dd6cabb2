import puppeteer, { type Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePrograms } from '#src/embedded/programs.ts';
import { visit } from '#test/support/clients/visit.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** /docs and /docs/events in a real browser. */

let app: Awaited<ReturnType<typeof startApp>>;
let address: string;
let browser: Browser;
beforeAll(async () => {
  app = await startApp();
  address = await app.listen();
  const { chromium } = await ensurePrograms(['chromium'], console.log);
  browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  await app?.[Symbol.asyncDispose]();
});

const NOTE_VIOLATIONS = `
  globalThis.violations = [];
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
    violations.push(violatedDirective + ' ' + blockedURI));`;

/** The page once it shows this text, with its requests and the violations of its policy. */
async function open(path: string, shown: string) {
  const page = await browser.newPage();
  const requested: string[] = [];
  const errors: unknown[] = [];
  page.on('request', (request) => {
    if (request.isNavigationRequest()) errors.length = 0; // of a load before
    requested.push(request.url());
  });
  page.on('pageerror', (error) => errors.push(error));
  await page.evaluateOnNewDocument(NOTE_VIOLATIONS);
  const reply = await visit(page, address + path);
  await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(shown)})`);
  await page.waitForNetworkIdle();
  const violations = await page.evaluate('violations');
  const text = await page.evaluate('document.body.innerText');
  return { headers: reply?.headers() ?? {}, requested, errors, violations, text };
}

describe.each([
  ['/docs', '/api/openapi.json', 'Create a session'],
  ['/docs/events', '/api/asyncapi.json', 'A browser session, from its request to its end.'],
])('%s', (path, document, shown) => {
  it(`shows ${document}, requests no other address, and does not violate its policy`, async () => {
    const { headers, requested, errors, violations, text } = await open(path, shown);
    expect(errors).toEqual([]);
    expect(text).toContain('Browser Session Service');
    expect(requested).toEqual(
      expect.arrayContaining([`${address}/docs/scalar.js`, address + document]),
    );
    // Inline resources, such as an icon, have no address.
    for (const url of requested) expect(url).toMatch(new RegExp(`^(${address}/|data:|blob:)`));
    expect(violations).toEqual([]);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
  });

  it('runs only the scripts of its own answer', async () => {
    const [policy, other] = await Promise.all(
      [1, 2].map(async () => {
        const { headers } = await fetch(address + path);
        return headers.get('content-security-policy') ?? '';
      }),
    );
    const nonce = /script-src 'nonce-([\w-]{22})';/.exec(policy ?? '')?.[1] ?? 'none';
    expect(other).toMatch(/script-src 'nonce-[\w-]{22}';/);
    expect(other).not.toContain(nonce);
    expect(policy).not.toMatch(/unsafe-eval|https?:|\*/);
  });
});

it('the script is sent compressed, or uncompressed to clients that do not accept gzip', async () => {
  const url = `${address}/docs/scalar.js`;
  const compressed = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
  const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  expect(compressed.headers.get('content-encoding')).toBe('gzip');
  expect(plain.headers.get('content-encoding')).toBeNull();
  expect(await plain.text()).toBe(await compressed.text());
});
