/** The longest name, in bytes of UTF-8: what the file systems of Linux, macOS and Windows take. */
export const NAME_BYTES_MAX = 255;

/** What a name becomes of which nothing is left. */
const NAMELESS = 'download';

/** Separators, and what Windows does not take in a name. */
const FORBIDDEN = /[/\\:*?"<>|]/g;
/**
 * Control characters, and those that turn the direction of text: `cod\u202Etxt.exe` looks like
 * `codexe.txt`.
 */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu;
/** Devices of Windows, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?=\.|$)/i;

/**
 * The safe name for a file whose name was suggested by others: in Unicode's normal form C, without
 * folders and control characters, no hidden file, no device of Windows, at most 255 bytes of which
 * the extension is kept. Never empty. A safe name stays as it is.
 */
export function safeFileName(suggested: string): string {
  const last = suggested.toWellFormed().normalize('NFC').split(/[/\\]/).findLast(isMore) ?? '';
  const plain = last
    .replaceAll(INVISIBLE, '')
    .replaceAll(FORBIDDEN, '_')
    .trim()
    .replace(/^\.+/, (dots) => '_'.repeat(dots.length))
    .replace(/[. ]+$/, '');
  const named = plain.replace(/^_+$/, '') || NAMELESS;
  return shortened(
    named.replace(DEVICE, (device) => `_${device}`),
    NAME_BYTES_MAX,
  );
}

function isMore(part: string): boolean {
  return !/^\.{0,2}$/.test(part);
}

/**
 * The name that a caller has given a file, in normal form C; null: it is not safe, and
 * `safeFileName` says what would be.
 */
export function givenFileName(name: string): string | null {
  const normal = name.toWellFormed() === name ? name.normalize('NFC') : null;
  return normal !== null && safeFileName(normal) === normal ? normal : null;
}

/** The name itself, or the first of `name (1).ext`, `name (2).ext` … that is not taken. */
export function unusedFileName(name: string, isTaken: (name: string) => boolean): string {
  let unused = name;
  for (let number = 1; isTaken(unused); number += 1) {
    const mark = ` (${number})`;
    const { stem, extension } = partsOf(shortened(name, NAME_BYTES_MAX - mark.length));
    unused = `${stem}${mark}${extension}`;
  }
  return unused;
}

/** The longest extension that is kept when a name is shortened. */
const EXTENSION_BYTES_MAX = 32;

function partsOf(name: string): { stem: string; extension: string } {
  const [extension = ''] = /(?:\.tar)?\.[^. ]+$/i.exec(name) ?? [];
  const isExtension = extension !== name && Buffer.byteLength(extension) <= EXTENSION_BYTES_MAX;
  return isExtension
    ? { stem: name.slice(0, name.length - extension.length), extension }
    : { stem: name, extension: '' };
}

/** The name with an end of its stem cut off, so that it has no more than so many bytes. */
function shortened(name: string, bytesMax: number): string {
  if (Buffer.byteLength(name) <= bytesMax) return name;
  const { stem, extension } = partsOf(name);
  const room = bytesMax - Buffer.byteLength(extension);
  let kept = '';
  let bytes = 0;
  // By what a person sees as one character: none is left half.
  for (const { segment } of graphemes.segment(stem)) {
    bytes += Buffer.byteLength(segment);
    if (bytes > room) break;
    kept += segment;
  }
  return `${kept.trimEnd() || NAMELESS}${extension}`.normalize('NFC');
}

const graphemes = new Intl.Segmenter();
