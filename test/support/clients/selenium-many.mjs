// Opens so many sessions at once, drives each until all are open, and then waits until it is killed:
// node selenium-many.mjs HUB PAGE COUNT
import { Builder } from 'selenium-webdriver';

const [hub, page, count] = process.argv.slice(2);
const capabilities = {
  browserName: 'chrome',
  'bss:options': { idle_timeout: '1m', labels: { test: 'many' } },
};
const LOOK_EVERY_MS = 10_000;
const began = Date.now();
const drivers = [];
// The first ones are not idle while the last ones still start.
const using = setInterval(() => {
  for (const driver of drivers) driver.getTitle().catch(() => undefined);
}, LOOK_EVERY_MS);

/** @returns {Promise<string>} the title, or which step has failed after how many ms, and why */
async function visit() {
  let step = 'New Session';
  try {
    const driver = await new Builder().usingServer(hub).withCapabilities(capabilities).build();
    step = 'Navigate To';
    await driver.get(page);
    step = 'Get Title';
    const title = await driver.getTitle();
    drivers.push(driver);
    return title;
  } catch (error) {
    return `${step} after ${Date.now() - began} ms: ${String(error)}`;
  }
}
const titles = await Promise.all(Array.from({ length: Number(count) }, visit));
clearInterval(using);
console.log(JSON.stringify(titles));
setInterval(() => undefined, 60_000);
