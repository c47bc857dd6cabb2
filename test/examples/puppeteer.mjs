// A session driven by Puppeteer, and its life as it happened: node puppeteer.mjs <url> <key>
import puppeteer from 'puppeteer-core';
import { connect, createClient } from 'browser-session-service/client';

const [, , url, apiKey] = process.argv;
const client = createClient({ url, apiKey });
const session = await client.sessions.create({ session_name: 'by-puppeteer', duration: '5m' });
const browser = await connect(puppeteer, session);
const [page] = await browser.pages();
await page.goto('data:text/html,<title>Hello</title><h1>Driven by Puppeteer</h1>');
console.log(`${await page.title()} from ${session.session_name}`);
await browser.disconnect();
await session.stop();
for await (const { type, state } of session.events()) console.log(type, state.status);
