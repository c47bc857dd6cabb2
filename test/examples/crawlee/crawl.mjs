// Crawlee's PlaywrightCrawler with the browser of a session: node crawl.mjs <url> <key> <start>
import { Configuration, PlaywrightCrawler } from '@crawlee/playwright';
import { connect, createClient } from 'browser-session-service/client';
import { chromium } from 'playwright';

const [, , url, apiKey, start] = process.argv;
const client = createClient({ url, apiKey });
await using session = await client.sessions.create({ session_name: 'crawl', duration: '30m' });

// Where Crawlee would launch a browser, it connects to the session's.
const launcher = { ...chromium, name: () => 'chromium', launch: () => connect(chromium, session) };
const titles = [];
const crawler = new PlaywrightCrawler(
  {
    launchContext: { launcher, useIncognitoPages: true },
    browserPoolOptions: { useFingerprints: false, maxOpenPagesPerBrowser: 10 },
    maxConcurrency: 2,
    async requestHandler({ page, enqueueLinks }) {
      titles.push(await page.title());
      await enqueueLinks();
    },
  },
  new Configuration({ persistStorage: false }),
);
await crawler.run([start]);
console.log(titles.toSorted().join(', '));
