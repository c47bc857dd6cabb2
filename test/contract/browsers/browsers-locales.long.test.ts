import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LANGUAGES } from '#src/roles/api/sessions/locale.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';

const ASK = `[
  Intl.DateTimeFormat().resolvedOptions().locale, (1234.5).toLocaleString(),
  new Date(0).toLocaleDateString(undefined, { timeZone: 'UTC' }),
  ['z', 'ä', 'a'].sort(Intl.Collator().compare).join(''), navigator.language].join(' ')`;

const ASKED = {
  page: ASK,
  worker: `new Promise((done) => {
    const source = ${JSON.stringify(`postMessage(${ASK})`)};
    const url = URL.createObjectURL(new Blob([source]));
    new Worker(url).onmessage = ({ data }) => done(data);
  })`,
  frame: `document.body.appendChild(document.createElement('iframe')).contentWindow.eval(
    ${JSON.stringify(ASK)})`,
};

const real = adapters.filter(({ adapter }) => adapter !== 'simulated');
describe.each(real)('a browser with a locale ($adapter)', ({ open }) => {
  let opened: OpenedBrowsers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  async function launched(locale: string) {
    const spec = aSpec({ locale });
    const { cdp: endpoint } = await opened.browsers.launch(spec);
    const cdp = await openCdp(endpoint);
    const session = await attachPage(cdp);
    return {
      ask: (expression: string) => evaluate(cdp, session, expression),
      [Symbol.asyncDispose]: async () => {
        cdp[Symbol.dispose]();
        await opened.browsers.stop(spec.workloadId);
      },
    };
  }

  test('has pages and workers that format and sort by it', async () => {
    await using browser = await launched('sv-SE');
    for (const [where, expression] of Object.entries(ASKED))
      expect([where, await browser.ask(expression)]).toEqual([
        where,
        'sv-SE 1\u00A0234,5 1970-01-01 azä sv-SE',
      ]);
  });

  test('has its script, and knows all languages that the API takes', async () => {
    await using browser = await launched('sr-Latn-RS');
    expect(await browser.ask(ASK)).toMatch(/^sr-Latn-RS 1\.234,5 1\. 1\. 1970\. .* sr-Latn-RS$/);
    const languages = [...LANGUAGES];
    const known = (asked: string) =>
      `Intl.Collator.supportedLocalesOf(Intl.DateTimeFormat.supportedLocalesOf(${asked})).join()`;
    expect(await browser.ask(known(JSON.stringify(languages)))).toBe(languages.join());
  });
});
