// Stagehand on a session: node act.mjs <url> <key>
// Stagehand 4 works by an extension of the browser, which the session is created with.
import { getExtensionArchive, localBrowser, Stagehand } from '@browserbasehq/stagehand';
import { createClient } from 'browser-session-service/client';
import { scriptedModel } from './scripted-model.mjs';

const [, , url, apiKey] = process.argv;
const client = createClient({ url, apiKey });
const extension = await client.extensions.upload(await getExtensionArchive());
await using session = await client.sessions.create({
  session_name: 'stagehand',
  extensions: [extension.id],
  duration: '30m',
});

const browser = await localBrowser.connect({ cdpUrl: session.cdp_url });
// In place of the script: { modelName: 'openai/…', apiKey: … }
const stagehand = await Stagehand.create({ browser, model: scriptedModel('Send') });
const [page] = await browser.context.pages();
await page.goto(
  'data:text/html,<title>Form</title><button onclick="document.title=`Sent`">Send</button>',
);
await stagehand.act('press the button Send');
console.log(await page.title());
await stagehand.close();
await browser.disconnect();
