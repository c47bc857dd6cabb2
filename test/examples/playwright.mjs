// A session driven by Playwright: node playwright.mjs <url> <key>
import { chromium } from 'playwright-core';
import { connect, createClient } from 'browser-session-service/client';

const [, , url, apiKey] = process.argv;
const client = createClient({ url, apiKey });
await using session = await client.sessions.create({
  session_name: 'by-playwright',
  duration: '5m',
});
const browser = await connect(chromium, session);
const [page] = browser.contexts()[0].pages();
await page.goto('data:text/html,<title>Hello</title><h1>Driven by Playwright</h1>');
console.log(`${await page.title()} from ${session.session_name}`);
await browser.close();
