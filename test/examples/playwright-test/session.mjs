// A session for each worker of Playwright Test, in place of a browser of its own: import `test`
// from here. BSS_URL and BSS_API_KEY name the service.
import { test as base, chromium } from '@playwright/test';
import { connect, createClient } from 'browser-session-service/client';

export { expect } from '@playwright/test';

export const test = base.extend({
  session: [
    // Playwright reads from the pattern which fixtures it needs: none.
    // oxlint-disable-next-line no-empty-pattern
    async ({}, use, { workerIndex }) => {
      const client = createClient({ url: process.env.BSS_URL, apiKey: process.env.BSS_API_KEY });
      const session_name = `worker-${workerIndex}`;
      await using session = await client.sessions.create({ session_name, duration: '30m' });
      await use(session);
    },
    // Creating one may wait for a browser.
    { scope: 'worker', timeout: 120_000 },
  ],
  // Playwright makes a context and a page of this browser for each test.
  browser: [
    async ({ session }, use) => {
      const browser = await connect(chromium, session);
      await use(browser);
      await browser.close();
    },
    { scope: 'worker' },
  ],
});
