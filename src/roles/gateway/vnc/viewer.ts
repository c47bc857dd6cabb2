import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { closeCodes } from '../connections/close-codes.ts';
import { TEXT_BYTES_MAX } from './cut-text.ts';

/** A file of the viewer page with its HTTP headers. */
export type ViewerFile = { headers: Record<string, string | number>; body: Buffer };

export type Viewer = {
  /**
   * The page itself, the same for every session.
   * @param embedders origins of pages that may frame it
   */
  page(embedders: readonly string[]): ViewerFile;
  /** A file below `/viewer/`; undefined: no such file. */
  file(name: string): ViewerFile | undefined;
};

/** The page's own script, which loads the others, and loads the page again if one of them fails. */
const INLINE_SCRIPT = /<script type="module">(.+?)<\/script>/s;

/**
 * Reads all files at start. Only files in this map are served, so no path can escape the folder.
 */
export async function createViewer(): Promise<Viewer> {
  const own = fileURLToPath(new URL('./viewer', import.meta.url));
  const files = new Map<string, ViewerFile>();
  for (const name of ['viewer.css', 'viewer.js', 'without-video-decoder.js'])
    files.set(name, fileOf(name, await readFile(join(own, name))));
  files.set('close-codes.js', fileOf('close-codes.js', Buffer.from(closeCodesModule())));

  const library = join(createRequire(import.meta.url).resolve('@novnc/novnc'), '../..');
  for (const folder of ['core', 'vendor']) {
    const entries = await readdir(join(library, folder), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (!entry.isFile() || !entry.name.endsWith('.js')) continue;
      const path = join(entry.parentPath, entry.name);
      const name = `novnc/${relative(library, path).split(sep).join('/')}`;
      files.set(name, fileOf(name, await readFile(path)));
    }
  }
  const page = fileOf('index.html', await readFile(join(own, 'index.html')));
  const inline = inlineScriptOf(page.body.toString());
  return {
    page: (embedders) => ({
      ...page,
      headers: { ...page.headers, ...pageHeaders(inline, embedders) },
    }),
    file: (name) => files.get(name),
  };
}

/** The hash of the page's one inline script. */
function inlineScriptOf(page: string): string {
  const [, inline] = INLINE_SCRIPT.exec(page) ?? [];
  if (inline === undefined) throw new Error('the viewer page has no inline script');
  return createHash('sha256').update(inline).digest('base64');
}

/**
 * The page may load scripts, styles and sockets of its own origin only, and run its one inline
 * script. Only pages of these origins may frame it. Its address contains the ticket, so no referrer
 * is sent.
 */
function pageHeaders(inlineHash: string, embedders: readonly string[]): Record<string, string> {
  const ancestors = embedders.length === 0 ? "'none'" : embedders.join(' ');
  return {
    'content-security-policy':
      `default-src 'none'; script-src 'self' 'sha256-${inlineHash}'; style-src 'self'; ` +
      "connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; " +
      `frame-ancestors ${ancestors}`,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
}

/** The close codes as a module for the page, so that there is one table. */
function closeCodesModule(): string {
  const rows = Object.entries(closeCodes);
  const sentences = Object.fromEntries(rows.map(([reason, { sentence }]) => [reason, sentence]));
  const ends = Object.fromEntries(
    rows.map(([reason, { code, sentence }]) => [code, { reason, sentence }]),
  );
  return [
    `export const sentences = ${JSON.stringify(sentences)};`,
    `export const ends = ${JSON.stringify(ends)};`,
    `export const textBytesMax = ${TEXT_BYTES_MAX};\n`,
  ].join('\n');
}

function fileOf(name: string, body: Buffer): ViewerFile {
  const type = { js: 'text/javascript', css: 'text/css', html: 'text/html' }[
    name.slice(name.lastIndexOf('.') + 1)
  ];
  return {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'content-length': body.length,
      'cache-control': 'max-age=3600',
      'x-content-type-options': 'nosniff',
    },
    body,
  };
}
