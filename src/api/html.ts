/** Text that is HTML already: made by `html` alone, so what is not escaped cannot get in. */
export type Html = { readonly html: string };

type Part = Html | string | number | null | undefined | readonly Part[];

/**
 * HTML with its parts put in: text escaped, HTML as it is, lists joined, null and undefined as
 * nothing.
 */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  const text = strings.map((string, at) => string + textOf(parts[at]));
  return { html: text.join('') };
}

/** Text without an escape: for files of our own, never for what came from outside. */
export function trusted(text: string): Html {
  return { html: text };
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function textOf(part: Part): string {
  if (part === null || part === undefined) return '';
  if (typeof part === 'string' || typeof part === 'number')
    return String(part).replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? '');
  return 'html' in part ? part.html : part.map(textOf).join('');
}
