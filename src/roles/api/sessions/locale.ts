/**
 * The languages whose dates, numbers and sorting Chromium knows: its ICU has a part of the world's.
 * In any other its pages would be in English.
 */
export const LANGUAGES: ReadonlySet<string> = new Set(
  (
    'af am ar bg bn ca cs da de el en es et fa fi fil fr gu he hi hr hu id it ja kn ko lt lv ml ' +
    'mr ms nb nl no pl pt ro ru sk sl sr sv sw ta te th tr uk ur vi zh'
  ).split(' '),
);
/** Beside the script that a language is usually written in. */
const OTHER_SCRIPTS: ReadonlySet<string> = new Set(['hi-Latn', 'sr-Latn', 'zh-Hant']);

/**
 * A language tag as browsers write it, from any spelling, as `DE_ch`; null: pages cannot be in it.
 * A browser's locale is a language, a script and a region, without variants and extensions.
 */
export function localeOf(tag: string): string | null {
  try {
    const locale = new Intl.Locale(tag.replaceAll('_', '-'));
    const { language, script, baseName } = locale;
    const rest = [language, script, locale.region].filter((part) => part !== undefined);
    if (locale.toString() !== baseName || baseName !== rest.join('-')) return null;
    const isUsual = script === undefined || script === new Intl.Locale(language).maximize().script;
    if (!isUsual && !OTHER_SCRIPTS.has(`${language}-${script}`)) return null;
    return LANGUAGES.has(language) ? baseName : null;
  } catch {
    return null;
  }
}
