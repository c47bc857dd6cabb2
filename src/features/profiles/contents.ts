import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { extract } from 'tar-stream';
import { listedMax, type ProfileContents } from '#events/profile.ts';
import type { LiveState } from './packed.ts';

/** Files with the names of cookies and of origins with storage; all else passes by unread. */
const COOKIES = /^(?:\.\/)?Default\/(?:Network\/)?Cookies(?:-journal)?$/;
const QUOTA = /^(?:\.\/)?Default\/WebStorage\/QuotaManager(?:-journal)?$/;
const LOCAL = /^(?:\.\/)?Default\/Local Storage\/leveldb\/\d+\.(?:log|ldb)$/;
const PICKED_BYTES_MAX = 32 * 1024 ** 2;
const LIST_MS = 10_000;
const LISTER = fileURLToPath(new URL('./list-contents.ts', import.meta.url));

/** Reads what a profile holds from its tar, while that passes. */
export type ContentsReader = {
  /** @throws Error where it is no tar */
  write(chunk: Uint8Array): Promise<void>;
  end(): Promise<ProfileContents>;
} & AsyncDisposable;

/**
 * The files were written by a browser for pages that are not trusted: they are opened by a process
 * of their own, which has no secret of the service and ends within `LIST_MS`.
 * @param folder does not exist yet; it is there for as long as this is open
 */
export function readContents(folder: string): ContentsReader {
  const tar = extract();
  let left = PICKED_BYTES_MAX;
  let count = 0;
  async function readAll(): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for await (const entry of tar) {
      const { name, type, size } = entry.header;
      const file = type === 'file' && size <= left ? nameFor(name, count) : null;
      if (file === null) entry.resume();
      else {
        left -= size;
        count += 1;
        await writeFile(join(folder, file), entry as AsyncIterable<Buffer>, { mode: 0o600 });
      }
    }
  }
  const reading = readAll();
  reading.catch(() => undefined);
  return {
    async write(chunk) {
      if (tar.write(Buffer.from(chunk))) return;
      await Promise.race([once(tar, 'drain'), reading]);
    },
    async end() {
      (tar as NodeJS.WritableStream).end();
      await reading;
      return count === 0 ? { origins: [], cookies: [] } : list(folder);
    },
    async [Symbol.asyncDispose]() {
      tar.destroy();
      await reading.catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function nameFor(path: string, count: number): string | null {
  const journal = path.endsWith('-journal') ? '-journal' : '';
  if (COOKIES.test(path)) return `cookies${journal}`;
  if (QUOTA.test(path)) return `quota${journal}`;
  return LOCAL.test(path) ? `local-${count}` : null;
}

async function list(folder: string): Promise<ProfileContents> {
  const args = ['--no-warnings', LISTER, folder];
  const options = { env: {}, cwd: folder, timeout: LIST_MS, maxBuffer: 1024 ** 2 };
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return JSON.parse(stdout) as ProfileContents;
}

/** Adds the names of what a browser has not written yet. */
export function withLiveState(written: ProfileContents, live: LiveState | null): ProfileContents {
  if (live === null) return written;
  const more = live.cookies.map(({ domain, name }) => {
    return { domain: String(domain).slice(0, 256), name: String(name).slice(0, 128) };
  });
  const cookies = new Map(
    [...written.cookies, ...more].map((cookie) => [`${cookie.domain} ${cookie.name}`, cookie]),
  );
  const stored = live.localStorage.filter(({ items }) => items.length > 0);
  const origins = new Set([...written.origins, ...stored.map(({ origin }) => origin)]);
  const isCut = origins.size > listedMax.origins || cookies.size > listedMax.cookies;
  return {
    origins: [...origins].toSorted().slice(0, listedMax.origins),
    cookies: [...cookies.values()].slice(0, listedMax.cookies),
    ...(isCut || written.isCut === true ? { isCut: true } : {}),
  };
}
