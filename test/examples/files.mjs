// A file into a session, and one out of it: node files.mjs <url> <key>
import { chromium } from 'playwright-core';
import { connect, createClient, setInputFiles } from 'browser-session-service/client';

const [, , url, apiKey] = process.argv;
const client = createClient({ url, apiKey });
await using session = await client.sessions.create({ session_name: 'files', duration: '5m' });
const browser = await connect(chromium, session);
const [page] = browser.contexts()[0].pages();
await page.setContent('<input type="file"><a download="ann.txt" href="data:,Hello Ann">Save</a>');

const people = await session.uploadFile(new Blob(['Ann']), { name: 'people.csv' });
await setInputFiles(page.locator('input'), people);
console.log(await page.evaluate(() => document.querySelector('input').files[0].name));

const [download] = await Promise.all([page.waitForEvent('download'), page.click('a')]);
const file = await session.saveDownload(download); // or to a path: { to: 'ann.txt' }
console.log(file.name, new TextDecoder().decode(await file.read()));
await browser.close();
