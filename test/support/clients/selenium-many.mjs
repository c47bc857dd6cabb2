// Opens so many sessions at once, drives each, and then waits until it is killed:
// node selenium-many.mjs HUB PAGE COUNT
import { Builder } from 'selenium-webdriver';

const [hub, page, count] = process.argv.slice(2);
const capabilities = {
  browserName: 'chrome',
  'bss:options': { idle_timeout: '1m', labels: { test: 'many' } },
};
const titles = await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    const driver = await new Builder().usingServer(hub).withCapabilities(capabilities).build();
    await driver.get(page);
    return driver.getTitle();
  }),
);
console.log(JSON.stringify(titles));
setInterval(() => undefined, 60_000);
