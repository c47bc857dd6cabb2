import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { extract, pack, type Header } from 'tar-stream';

/**
 * What of a profile's folder is left out of its archive: caches that Chromium fills again, its
 * locks, its crash reports, and its windows, so that it opens with one blank page. A name that ends
 * with `*` stands for all that begin with it.
 */
const LEFT_OUT = [
  'Singleton*',
  'DevToolsActivePort',
  'Crash Reports',
  'Crashpad',
  'BrowserMetrics*',
  'GrShaderCache',
  'ShaderCache',
  'GraphiteDawnCache',
  'Safe Browsing',
  'component_crx_cache',
  'extensions_crx_cache',
  'Default/Cache',
  'Default/Code Cache',
  'Default/GPUCache',
  'Default/DawnGraphiteCache',
  'Default/DawnWebGPUCache',
  'Default/Sessions',
  'Default/Sessions_Encrypted',
  'Default/Session Storage',
  'Default/blob_storage',
];

/** tar's arguments that write the archive of a folder to its output. */
export function packArguments(folder: string): string[] {
  const leftOut = LEFT_OUT.map((pattern) => `--exclude=./${pattern}`);
  // A socket that is left out is no error.
  return [
    '--create',
    '--file=-',
    '--warning=none',
    ...leftOut,
    '--anchored',
    `--directory=${folder}`,
    '.',
  ];
}

/** tar's arguments that unpack its input into a folder. */
export function unpackArguments(folder: string): string[] {
  return ['--extract', '--file=-', '--no-same-owner', `--directory=${folder}`];
}

/** The user of browsers in containers; a process's profile is unpacked as its own user's. */
const OWNER = { uid: 1000, gid: 1000 };
const PREFERENCES = 'Default/Preferences';
/** They have some 10 KB; a larger file is none that Chromium wrote. */
const PREFERENCES_BYTES_MAX = 4 * 1024 ** 2;

/**
 * The archive of a profile out of a tar of its folder, `folder` in that tar: as a browser is
 * launched with it, of its owner, with files and folders alone and without caches. The preferences
 * say how the browser ended, and a later close has to be distinguishable, so they say another word,
 * which Chromium takes for no crash.
 * @throws what the tar throws, and Error where it is none, while it is read
 */
export function archiveOf(
  tar: AsyncIterable<Uint8Array>,
  folder: string,
): AsyncIterable<Uint8Array> {
  return rewrite(tar, (header) => {
    const path = header.name.slice(folder.length + 1).replace(/\/$/, '');
    if (isLeftOut(path)) return null;
    const own = headerOf(header, `./${path}`);
    return path === PREFERENCES && (header.size ?? 0) <= PREFERENCES_BYTES_MAX
      ? { header: own, edit: notClosedYet }
      : { header: own };
  });
}

/**
 * A header by its named fields alone: one that was read with PAX records keeps them, and they are
 * written behind the fields, so that its old name would hold.
 */
function headerOf({ type, size, mode, mtime }: Header, name: string): NewHeader {
  const kind = type === 'directory' ? 'directory' : 'file';
  return { name, type: kind, size, mode, mtime, ...OWNER };
}

function isLeftOut(path: string): boolean {
  return LEFT_OUT.some((pattern) =>
    pattern.endsWith('*')
      ? path.startsWith(pattern.slice(0, -1))
      : path === pattern || path.startsWith(`${pattern}/`),
  );
}

function notClosedYet(preferences: Buffer): Buffer {
  const text = preferences.toString('latin1');
  return Buffer.from(
    text.replace(/"exit_type":"(?:Normal|Crashed)"/, '"exit_type":"Kept"'),
    'latin1',
  );
}

type NewHeader = Pick<Header, 'name' | 'type' | 'size' | 'mode' | 'mtime' | 'uid' | 'gid'>;
type Rewritten = { header: NewHeader; edit?: (data: Buffer) => Buffer };

/** A tar's files and folders as `map` has them, null: without this one. Links are left out. */
async function* rewrite(
  tar: AsyncIterable<Uint8Array>,
  map: (header: Header) => Rewritten | null,
): AsyncGenerator<Uint8Array> {
  const source = Readable.from(tar, { objectMode: false });
  const from = extract();
  const to = pack();
  source.on('error', (error) => from.destroy(error));
  // Their readers get their errors.
  for (const stream of [from, to]) stream.on('error', () => undefined);
  source.pipe(from);
  async function copy(): Promise<void> {
    for await (const entry of from) {
      const { type } = entry.header;
      const isKept = type === 'file' || type === 'directory' || type === 'contiguous-file';
      const rewritten = isKept ? map(entry.header) : null;
      if (rewritten === null) entry.resume();
      else await add(to, rewritten, Readable.from(entry as AsyncIterable<Buffer>));
    }
    to.finalize();
  }
  const copying = copy().catch((error: unknown) => to.destroy(error as Error));
  try {
    for await (const chunk of to) yield chunk as Uint8Array;
    await copying;
  } finally {
    source.destroy();
    from.destroy();
    to.destroy();
  }
}

async function add(
  to: ReturnType<typeof pack>,
  { header, edit }: Rewritten,
  body: Readable,
): Promise<void> {
  const edited = edit?.(await buffer(body));
  const size = edited?.length ?? header.size ?? 0;
  const added = Promise.withResolvers<void>();
  const entry = to.entry({ ...header, size }, (error) =>
    error == null ? added.resolve() : added.reject(error),
  );
  // It is awaited last, and fails with what fails before.
  added.promise.catch(() => undefined);
  if (header.type === 'directory') return added.promise;
  // The tar's own error says the same.
  entry.on('error', () => undefined);
  for await (const chunk of edited === undefined ? body : [edited])
    if (!entry.write(chunk)) await Promise.race([once(entry, 'drain'), added.promise]);
  entry.end(undefined);
  await added.promise;
}
