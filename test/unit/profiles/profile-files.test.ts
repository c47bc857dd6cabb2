import { pack, extract } from 'tar-stream';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { archiveOf } from '#src/browsers/chromium/profile-files.ts';

/** Tars of profiles, as browsers leave them. */

type Entry = { name: string; text?: string; link?: string };

function tarOf(entries: Entry[]): AsyncIterable<Uint8Array> {
  const tar = pack();
  for (const { name, text, link } of entries)
    if (link !== undefined) tar.entry({ name, type: 'symlink', linkname: link });
    else if (text === undefined) tar.entry({ name, type: 'directory', mode: 0o700 });
    else tar.entry({ name, mode: 0o600 }, text);
  tar.finalize();
  return Readable.from(tar, { objectMode: false });
}
async function entriesOf(tar: AsyncIterable<Uint8Array>) {
  const reader = extract();
  reader.on('error', () => undefined);
  async function feed(): Promise<void> {
    for await (const chunk of tar) reader.write(chunk);
    (reader as NodeJS.WritableStream).end();
  }
  const feeding = feed().catch((error: Error) => reader.destroy(error));
  const found: { name: string; text: string; uid: number | undefined }[] = [];
  for await (const entry of reader) {
    const { name, uid } = entry.header;
    found.push({ name, uid, text: (await buffer(entry)).toString() });
  }
  await feeding;
  return found;
}

describe('the archive of a profile', () => {
  it('is its browser’s user’s, and says of no close', async () => {
    const preferences = '{"profile":{"exit_type":"Normal"}}';
    const tar = tarOf([
      { name: 'data/' },
      { name: 'data/Default/' },
      { name: 'data/Default/Preferences', text: preferences },
      { name: 'data/Default/Cookies', text: 'c'.repeat(300_000) },
    ]);
    expect(await entriesOf(archiveOf(tar, 'data'))).toEqual([
      { name: './', uid: 1000, text: '' },
      { name: './Default', uid: 1000, text: '' },
      { name: './Default/Preferences', uid: 1000, text: '{"profile":{"exit_type":"Kept"}}' },
      { name: './Default/Cookies', uid: 1000, text: 'c'.repeat(300_000) },
    ]);
  });

  it.each([
    ['of more than 100 bytes', `IndexedDB/https_${'f'.repeat(140)}.web.app_0.indexeddb.leveldb`],
    ['not of ASCII', 'Service Worker/Größe/ключ/鍵'],
    ['of both', `${'ü'.repeat(90)}/${'x'.repeat(60)}`],
  ])('has files with names %s at their place', async (_, path) => {
    const name = `data/Default/${path}/000003.log`;
    const archived = await entriesOf(archiveOf(tarOf([{ name, text: 'kept' }]), 'data'));
    expect(archived).toEqual([{ name: `./Default/${path}/000003.log`, uid: 1000, text: 'kept' }]);
  });

  it('has no links', async () => {
    const tar = tarOf([
      { name: './First Run', text: '' },
      { name: './x', link: '/etc/passwd' },
    ]);
    expect(await entriesOf(archiveOf(tar, '.'))).toMatchObject([{ name: './First Run' }]);
  });

  it('leaves out caches, locks and windows', async () => {
    const kept = ['Local State', 'Default/Cookies', 'Default/Cached Theme.pak'];
    const left = [
      'SingletonLock',
      'Default/Cache/1',
      'Default/Sessions/Tabs_1',
      'BrowserMetrics-1',
    ];
    const all = [...kept, ...left].map((name) => ({ name: `data/${name}`, text: name }));
    const found = await entriesOf(archiveOf(tarOf(all), 'data'));
    expect(found.map(({ name }) => name)).toEqual(kept.map((name) => `./${name}`));
  });

  it('fails where its source fails, and where that is no tar', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(10);
      throw new Error('the browser is gone');
    }
    await expect(entriesOf(archiveOf(failing(), '.'))).rejects.toThrow('the browser is gone');
    async function* cut(): AsyncGenerator<Uint8Array> {
      for await (const chunk of tarOf([{ name: './a', text: 'x'.repeat(5_000) }]))
        yield chunk.subarray(0, 2_000);
    }
    await expect(entriesOf(archiveOf(cut(), '.'))).rejects.toThrow();
  });
});
