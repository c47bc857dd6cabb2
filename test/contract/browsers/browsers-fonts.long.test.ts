import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDockerBrowsers } from '#test/support/browsers/docker-browsers.fixture.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  type Cdp,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';
import { hasDocker } from '#test/support/servers/docker-engine.ts';

/** A sentence or two of each script; who reads it sees more than that its letters are there. */
const TEXTS = {
  Chinese: '人人生而自由，在尊严和权利上一律平等。',
  'Chinese, traditional': '人人生而自由，在尊嚴和權利上一律平等。',
  Japanese: 'すべての人間は、生まれながらにして自由であり、テレビとコーヒー。',
  Korean: '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.',
  Arabic: 'يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.',
  Persian: 'تمام افراد بشر آزاد به دنیا می‌آیند و پژوهشگران گچ می‌خرند.',
  Urdu: 'تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ ٹڈے',
  Hebrew: 'כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.',
  Thai: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ',
  Lao: 'ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ',
  Khmer: 'មនុស្សទាំងអស់កើតមកមានសេរីភាព',
  Burmese: 'လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာ',
  Hindi: 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।',
  Bengali: 'সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।',
  Punjabi: 'ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ ਅਤੇ ਹੱਕਾਂ ਦੇ ਪੱਖੋਂ ਆਜ਼ਾਦ ਹੈ',
  Gujarati: 'પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર છે.',
  Odia: 'ସବୁ ମଣିଷ ଜନ୍ମକାଳରୁ ସ୍ୱାଧୀନ',
  Tamil: 'மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்',
  Telugu: 'ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులు',
  Kannada: 'ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ',
  Malayalam: 'മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും',
  Sinhala: 'සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත',
  Tibetan: 'འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས',
  Amharic: 'የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርም እኩልነት ያለው ነው',
  Armenian: 'Բոլոր մարդիկ ծնվում են ազատ ու հավասար',
  Georgian: 'ყველა ადამიანი იბადება თავისუფალი',
  Emoji: '😀👍🏽👩‍👩‍👧🇩🇪❤️🍣',
} as const;

/** An unassigned character: no font has it, and what is drawn is the box of a missing glyph. */
const UNASSIGNED = '\u0378';

/** Which of the characters are drawn as the box, with the fonts that a page has by default. */
const MISSING_SCRIPT = `(async (text, unassigned) => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.font = '32px sans-serif';
  const drawn = (character) => {
    context.clearRect(0, 0, 64, 64);
    context.fillText(character, 16, 44);
    return context.getImageData(0, 0, 64, 64).data.join();
  };
  const box = drawn(unassigned);
  const nothing = drawn(' ');
  if (box === nothing) throw new Error('a missing glyph is not drawn');
  return [...new Set(text.match(/[\\p{L}\\p{N}\\p{Emoji_Presentation}]/gu))]
    .filter((character) => [box, nothing].includes(drawn(character))).join('');
})`;

/** The image's fonts: a page in any of these scripts can be read. */
describe.runIf(hasDocker())('text in a Docker browser', () => {
  let opened: OpenedBrowsers;
  let cdp: Cdp;
  let page = '';

  beforeAll(async () => {
    opened = await openDockerBrowsers();
    const workloadId = `wl_fonts_${process.pid}`;
    const screen = { width: 800, height: 600 };
    const browser = await opened.browsers.launch({ workloadId, vncPassword: 'aB3dE6gH', screen });
    cdp = await openCdp(browser.cdp);
    page = await attachPage(cdp);
  });

  afterAll(async () => {
    cdp[Symbol.dispose]();
    await opened[Symbol.asyncDispose]();
  });

  test.each(Object.entries(TEXTS))('has a glyph for each letter: %s', async (_name, text) => {
    const missing = await evaluate(
      cdp,
      page,
      `${MISSING_SCRIPT}(${JSON.stringify(text)}, ${JSON.stringify(UNASSIGNED)})`,
    );
    expect(missing).toBe('');
  });

  test('keeps the fonts of Latin, on which the widths of pages depend', async () => {
    await cdp.send('DOM.enable', {}, page);
    await cdp.send('CSS.enable', {}, page);
    const families = ['Arial', 'sans-serif', 'serif', 'monospace'];
    const paragraphs = families.map((family) => `<p style="font-family: ${family}">Wolf</p>`);
    await evaluate(cdp, page, `document.body.innerHTML = ${JSON.stringify(paragraphs.join(''))}`);
    const { root } = await ask<{ root: { nodeId: number } }>('DOM.getDocument');
    const all = { nodeId: root.nodeId, selector: 'p' };
    const { nodeIds } = await ask<{ nodeIds: number[] }>('DOM.querySelectorAll', all);
    // A paragraph has no font before it is laid out.
    const fonts = async () => {
      const names: string[] = [];
      for (const nodeId of nodeIds) {
        const method = 'CSS.getPlatformFontsForNode';
        const of = await ask<{ fonts: { familyName: string }[] }>(method, { nodeId });
        names.push(...of.fonts.map(({ familyName }) => familyName));
      }
      return names;
    };
    const liberation = ['Liberation Sans', 'Liberation Sans', 'Liberation Serif'];
    await expect.poll(fonts).toEqual([...liberation, 'DejaVu Sans Mono']);
  });

  async function ask<Answer>(method: string, params: object = {}): Promise<Answer> {
    return (await cdp.send(method, params, page)) as Answer;
  }
});
