import { expect, test } from './session.mjs';

const SHOP = `data:text/html,<title>Shop</title>
  <button onclick="count.textContent = Number(count.textContent) + 1">Buy</button>
  <p id="count">0</p>`;

for (const times of [1, 2, 3, 4])
  test(`counts ${times} clicks`, async ({ page, session }) => {
    await page.goto(SHOP);
    for (let click = 0; click < times; click += 1) await page.getByText('Buy').click();
    await expect(page.locator('#count')).toHaveText(String(times));
    test.info().annotations.push({ type: 'session', description: session.id });
  });
