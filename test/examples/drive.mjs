// Drives the session in the given file: node drive.mjs session.json
import { readFile } from 'node:fs/promises';
import puppeteer from 'puppeteer-core';

const { cdp_url } = JSON.parse(await readFile(process.argv[2], 'utf8'));
const browser = await puppeteer.connect({ browserWSEndpoint: cdp_url, defaultViewport: null });
const [page] = await browser.pages();
await page.goto('data:text/html,<title>Hello</title><h1>Driven by Puppeteer</h1>');
console.log(`${await page.title()} from ${await browser.version()}`);
await browser.disconnect();
