import type { LeakSurface } from './leak-surfaces.ts';

/**
 * The forms that a secret may have in a text, by name: plain, in base64 (at any offset of the
 * encoded text), in hex, URL-encoded, and as JSON within JSON.
 */
export function formsOf(secret: string): Map<string, string[]> {
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    // Characters at either end depend on the text beside the secret, too.
    const [begin, end] = [Math.ceil((offset * 8) / 6), ((offset + bytes.length) * 8) / 6];
    return text.slice(begin, Math.floor(end));
  });
  const forUrls = inBase64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const asJson = JSON.stringify(secret).slice(1, -1);
  return new Map([
    ['plain', [secret]],
    ['base64', inBase64],
    ['base64url', forUrls],
    ['hex', [bytes.toString('hex'), bytes.toString('hex').toUpperCase()]],
    ['URL-encoded', [encodeURIComponent(secret), new URLSearchParams({ '': secret }).toString()]],
    ['JSON', [asJson, JSON.stringify(asJson).slice(1, -1)]],
  ]);
}

/** `<secret> in <surface> (<form>)` for each secret that was found. */
export function findSecrets(
  secrets: ReadonlyMap<string, string>,
  surfaces: readonly LeakSurface[],
): string[] {
  const wanted = [...secrets].flatMap(([secret, value]) =>
    [...formsOf(value)].map(([form, texts]) => ({ secret, form, texts })),
  );
  return surfaces.flatMap(({ name, text }) =>
    wanted
      .filter(({ texts }) => texts.some((one) => text.includes(one)))
      .map(({ secret, form }) => `${secret} in ${name} (${form})`),
  );
}
