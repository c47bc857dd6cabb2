import type { Cdp } from '#test/support/browsers/browsers.fixture.ts';

/** What a real browser makes of a JPEG: its size, and the colour in its middle as #rrggbb. */
export type Decoded = { width: number; height: number; middle: string };

/** A script that decodes a JPEG in any page; it throws if the browser refuses the picture. */
export function decodeScript(bytes: Uint8Array): string {
  const address = `data:image/jpeg;base64,${Buffer.from(bytes).toString('base64')}`;
  return `(async () => {
    const image = new Image();
    image.src = ${JSON.stringify(address)};
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    const [red, green, blue] = canvas.getImageData(image.width / 2, image.height / 2, 1, 1).data;
    const middle = '#' + [red, green, blue].map((n) => n.toString(16).padStart(2, '0')).join('');
    return { width: image.width, height: image.height, middle };
  })()`;
}

/**
 * Decodes a JPEG in a page of a browser.
 * @throws Error if the browser refuses it
 */
export async function decodeJpeg(cdp: Cdp, page: string, bytes: Uint8Array): Promise<Decoded> {
  const params = { expression: decodeScript(bytes), awaitPromise: true, returnByValue: true };
  const { result, exceptionDetails } = await cdp.send('Runtime.evaluate', params, page);
  if (exceptionDetails !== undefined) throw new Error('the browser does not decode the picture');
  return (result as { value: Decoded }).value;
}

/** Whether two colours, as #rrggbb, are the same as far as JPEG keeps them. */
export function isNear(one: string, other: string): boolean {
  const [a, b] = [one, other].map((colour) => Buffer.from(colour.slice(1), 'hex'));
  return [0, 1, 2].every((at) => Math.abs((a?.[at] ?? 0) - (b?.[at] ?? 0)) <= 8);
}
