import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hasDocker } from '#test/support/servers/docker-engine.ts';
import { dialRfb } from '#test/support/clients/rfb-client.ts';
import type { RfbClient } from '#test/support/clients/rfb-client.ts';
import { openDockerBrowsers } from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  openProcessBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp, OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';

/** Every letter with its upper case beside it, where it has one. */
const ALPHABETS = {
  'Latin-1': cased('àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ') + 'ß',
  'the signs of Latin-1': '¡¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿×÷',
  'Polish, Czech, Slovak, Hungarian, Croatian': cased('ąćęłńśźżčďěňřšťůžľĺŕőűđ'),
  'Romanian, Turkish': `${cased('ășțşţğ')}ıİ`,
  Baltic: cased('āēģīķļņūėįų'),
  Russian: cased('абвгдежзийклмнопрстуфхцчшщъыьэюяё'),
  'the other Cyrillic alphabets': cased('іїєґўђѓѕјљњћќџ'),
  Greek: `${cased('αβγδεζηθικλμνξοπρστυφχψωάέήίόύώϊϋ')}ςΐΰ`,
  signs: 'œŒẞ€–—…“”„‘’‚‹›•™№†‡←→↑↓',
  US: `${cased('abcdefghijklmnopqrstuvwxyz')}0123456789 !"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`,
} as const;

/** Characters of no alphabet above, for which the X server's keymap has no key. */
const UNKEYED = '一丁七万丈三上下不与丑且世丘丙业丛东丝';
const POLL = { timeout: 60_000 };
const VNC_PASSWORD = 'aB3dE6gH';
const SHIFT = 0xffe1;
/** The keysyms of accents that wait for their letter: grave, acute, circumflex, tilde, … */
const DEAD_KEYS = { '`': 0xfe50, '´': 0xfe51, '^': 0xfe52, '~': 0xfe53, '¨': 0xfe57 } as const;

describe.each([
  ...(hasDocker() ? [{ adapter: 'docker', open: () => openDockerBrowsers() }] : []),
  { adapter: 'process', open: () => openProcessBrowsers() },
])('what a viewer types ($adapter)', ({ open }) => {
  let opened: OpenedBrowsers;
  let cdp: Cdp;
  let page = '';
  let viewer: RfbClient;

  beforeAll(async () => {
    opened = await open();
    const workloadId = `wl_keyboard_${process.pid}`;
    const screen = { width: 800, height: 600 };
    const browser = await opened.browsers.launch({ workloadId, vncPassword: VNC_PASSWORD, screen });
    cdp = await openCdp(browser.cdp);
    page = await attachPage(cdp);
    viewer = await dialRfb(browser.vnc, VNC_PASSWORD);
  });

  afterAll(async () => {
    viewer[Symbol.dispose]();
    cdp[Symbol.dispose]();
    await opened[Symbol.asyncDispose]();
  });

  /** Prepares an empty text field, and a page that records the keys it receives. */
  beforeEach(async () => {
    await cdp.send('Page.bringToFront', {}, page);
    await run(`document.body.innerHTML = '<textarea></textarea>'`);
    await run(`keys = ''; onkeydown = ({ key }) => { if (key.length === 1) keys += key; }`);
    await run(`released = ''; onkeyup = ({ key }) => { released += key.toLowerCase(); }`);
    await run(`document.querySelector('textarea').focus()`);
    const press = (): Promise<unknown> => {
      strike(viewer, 'ä');
      return typed();
    };
    // Chromium delivers text to a field somewhat later than the page reports the focus, and keys
    // that come before the window has X's focus never. Once one has arrived all later ones do.
    await expect.poll(press, POLL).not.toBe('');
    strike(viewer, 'ö');
    await expect.poll(() => run('released'), POLL).toContain('ö');
    await run(`keys = document.querySelector('textarea').value = ''`);
  });

  const run = (script: string) => evaluate(cdp, page, script);
  const typed = () => run(`document.querySelector('textarea').value`);

  test.each(Object.entries(ALPHABETS))('arrives in the page: %s', async (_name, letters) => {
    for (const letter of letters) strike(viewer, letter);
    await expect.poll(typed, POLL).toBe(letters);
    expect(await run('keys')).toBe(letters);
  });

  test('arrives with Shift held down, as people type upper case', async () => {
    viewer.key(SHIFT, true);
    for (const letter of 'ÄÖÜÉÑŁŽЖΩ') strike(viewer, letter);
    viewer.key(SHIFT, false);
    for (const letter of 'äß') strike(viewer, letter);
    await expect.poll(typed, POLL).toBe('ÄÖÜÉÑŁŽЖΩäß');
  });

  test('arrives as one letter after a dead key, as a viewer’s own keyboard may send it', async () => {
    for (const [accent, letters] of [
      ['`', 'aeiouAEIOU'],
      ['´', 'aeiouyAEIOUY'],
      ['^', 'aeiouAEIOU'],
      ['~', 'anoANO'],
      ['¨', 'aeiouyAEIOUY'],
    ] as const)
      for (const letter of letters) {
        press(viewer, DEAD_KEYS[accent]);
        strike(viewer, letter);
      }
    const expected = 'àèìòùÀÈÌÒÙáéíóúýÁÉÍÓÚÝâêîôûÂÊÎÔÛãñõÃÑÕäëïöüÿÄËÏÖÜŸ';
    await expect.poll(typed, POLL).toBe(expected);
  });

  test('arrives at the latest when pressed again, for up to 19 characters without a key', async () => {
    for (const character of UNKEYED) {
      await expect
        .poll(async () => {
          strike(viewer, character);
          return await typed();
        }, POLL)
        .toContain(character);
    }
  });
});

const novnc = createRequire(import.meta.url).resolve('@novnc/novnc');
/** The keysyms are those that noVNC sends. */
const { default: keysyms } = (await import(
  new URL('input/keysymdef.js', `file://${novnc}`).href
)) as {
  default: { lookup(codePoint: number): number };
};

function strike(viewer: RfbClient, letter: string): void {
  press(viewer, keysyms.lookup(letter.codePointAt(0) ?? 0));
}

function press(viewer: RfbClient, keysym: number): void {
  viewer.key(keysym, true);
  viewer.key(keysym, false);
}

function cased(letters: string): string {
  return letters.replaceAll(/./gu, (letter) => letter + letter.toUpperCase());
}
