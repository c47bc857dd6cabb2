import type { Page } from 'puppeteer-core';

/**
 * A page that notes each key pressed in it, and what automation notes, in the order of arrival: it
 * tells whether a person or automation came first.
 */
const PAGE =
  'data:text/html,<body><script>window.log=[];' +
  "document.addEventListener('keydown',({key})=>log.push(key));</script>";

/** Opens the page in a tab that has the focus. */
export async function record(page: Page): Promise<void> {
  await page.goto(PAGE);
  await page.bringToFront();
  await note(page, 'begin');
}

/** Resolves with the number of notes once the page has it. */
export async function note(page: Page, text: string): Promise<number> {
  return page.evaluate(`log.push(${JSON.stringify(text)})`) as Promise<number>;
}

export async function notesOf(page: Page): Promise<string[]> {
  return page.evaluate('log') as Promise<string[]>;
}
