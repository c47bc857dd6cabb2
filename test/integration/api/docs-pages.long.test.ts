import { createHash } from 'node:crypto';
import puppeteer, { type Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { visit } from '#test/support/clients/visit.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

/** /docs and /docs/events in a real browser. */

/** For what hangs: a browser on a busy machine is slow. */
const WITHIN_MS = 120_000;

let app: Awaited<ReturnType<typeof startApp>>;
let address: string;
let browser: Browser;
beforeAll(async () => {
  app = await startApp();
  address = await app.listen();
  const { chromium } = await ensurePrograms(['chromium'], console.log);
  browser = await puppeteer.launch({
    executablePath: chromium,
    args: ['--no-sandbox'],
    timeout: WITHIN_MS,
  });
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
  page.setDefaultTimeout(WITHIN_MS);
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

  it('runs its own script, allowed by its hash, and scripts of this address alone', async () => {
    const answer = await fetch(address + path);
    const html = await answer.text();
    const policy = answer.headers.get('content-security-policy') ?? '';
    const own = /<script type="text\/javascript">([^]*?)<\/script>/.exec(html)?.[1] ?? 'none';
    const hash = createHash('sha256').update(own).digest('base64');
    expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`);
    expect(policy).not.toMatch(/unsafe-eval|https?:|\*/);
  });

  it.each(['gzip', 'identity'])('is not sent again to a client that has it: %s', async (coding) => {
    const headers = { 'accept-encoding': coding };
    for (const url of [address + path, address + document]) {
      const first = await fetch(url, { headers });
      expect(first.headers.get('cache-control')).toBe('no-cache');
      const etag = first.headers.get('etag') ?? '';
      const again = await fetch(url, { headers: { ...headers, 'if-none-match': `"x", ${etag}` } });
      expect([again.status, await again.text()]).toEqual([304, '']);
      expect(again.headers.get('etag')).toBe(etag);
      expect(again.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
      const changed = await fetch(url, { headers: { ...headers, 'if-none-match': 'W/"other"' } });
      expect(changed.status).toBe(200);
    }
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

it('a client that refuses gzip by its quality gets plain text', async () => {
  const answer = await fetch(`${address}/api/openapi.json`, {
    headers: { 'accept-encoding': 'gzip;q=0, identity' },
  });
  expect(answer.headers.get('content-encoding')).toBeNull();
});
