// WebdriverIO's first script on a session: node first.mjs http://host KEY PAGE
import { remote } from 'webdriverio';

const [origin, key, page] = process.argv.slice(2);
const { protocol, hostname, port } = new URL(origin);
const browser = await remote({
  protocol: protocol.slice(0, -1),
  hostname,
  port: Number(port || (protocol === 'https:' ? 443 : 80)),
  path: '/wd/hub',
  // `user` and `key` would be sent with the first command alone.
  headers: { Authorization: `Bearer ${key}` },
  logLevel: 'error',
  capabilities: { browserName: 'chrome', 'bss:options': { session_name: 'by-webdriverio' } },
});
try {
  await browser.url(page);
  console.log(await browser.getTitle());
  await browser.$('[name=my-text]').setValue('WebdriverIO');
  await browser.$('button').click();
  console.log(await browser.$('#message').getText());
} finally {
  await browser.deleteSession();
}
