import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

export const MANIFEST = {
  manifest_version: 3,
  name: 'Marker',
  version: '1.2',
  content_scripts: [{ matches: ['<all_urls>'], js: ['code/mark.js'], run_at: 'document_start' }],
};

/** An extension that marks each page, or whatever the files say; a link is given as `{ link }`. */
export async function extensionZip(
  manifest: object | string = MANIFEST,
  files: Record<string, string | Buffer> = {
    'code/mark.js': "document.documentElement.dataset.marked = 'yes';",
  },
  modes: Record<string, number> = {},
): Promise<Buffer> {
  const zip = new ZipFile();
  const all = {
    'manifest.json': typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
    ...files,
  };
  for (const [path, data] of Object.entries(all)) {
    const mode = modes[path] ?? 0o100644;
    zip.addBuffer(Buffer.from(data), path, { mode, mtime: new Date(0) });
  }
  zip.end();
  return buffer(zip.outputStream);
}

/** The same bytes with another name of the same length, which no writer would write. */
export function renamed(zip: Buffer, from: string, to: string): Buffer {
  if (from.length !== to.length) throw new RangeError('names of one length');
  return Buffer.from(zip.toString('latin1').replaceAll(from, to), 'latin1');
}

/** A CRX of version 3, whose signatures are not looked at. */
export function crxOf(zip: Buffer, version = 3): Buffer {
  const header = Buffer.from('signatures');
  const begin = Buffer.alloc(12);
  begin.write('Cr24', 'latin1');
  begin.writeUInt32LE(version, 4);
  begin.writeUInt32LE(header.length, 8);
  return Buffer.concat([begin, header, zip]);
}
