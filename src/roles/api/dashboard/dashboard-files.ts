import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

/** A file of the built dashboard in each form in which it is sent. */
export type DashboardFile = {
  body: { identity: Buffer; gzip: Buffer; br: Buffer };
  headers: Readonly<Record<string, string>>;
};

/** The files by path: `index.html`, `assets/index-1a2b3c.js`. Empty: it was not built. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

/**
 * The page for an address. Its scripts are at relative addresses, as a proxy may have the service
 * below a path: those of `/sessions/:id` lead one folder up.
 */
export function pageAt(path: string): string {
  return path.lastIndexOf('/') === 0 ? 'index.html' : 'nested.html';
}

/** The licences of what the service is distributed with; built with the dashboard. */
export const LICENCES_FILE = 'licenses.txt';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/**
 * Reads all files of the build: only these are served, so no path can leave the folder.
 * @param sockets origins of the gateway, to which the page may open WebSockets
 */
export async function loadDashboard(
  folder: string,
  sockets: readonly string[],
): Promise<DashboardFiles> {
  const files = new Map<string, DashboardFile>();
  for (const path of await builtFiles(folder)) {
    const type = TYPES[extname(path)];
    if (type === undefined) continue;
    const name = relative(folder, path).split(sep).join('/');
    const [identity, gzip, br] = await Promise.all(
      ['', '.gz', '.br'].map((form) => readFile(path + form)),
    );
    if (identity === undefined || gzip === undefined || br === undefined) continue;
    const headers = { 'content-type': type, ...headersOf(name, identity, sockets) };
    files.set(name, { body: { identity, gzip, br }, headers });
  }
  return files;
}

async function builtFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

function headersOf(name: string, bytes: Buffer, sockets: readonly string[]) {
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  return {
    // Weak: the same for each form.
    etag: `W/"${hash}"`,
    vary: 'accept-encoding',
    // These have the hash of their content in their name.
    'cache-control': name.startsWith('assets/')
      ? 'public, max-age=31536000, immutable'
      : 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': policyFor(sockets),
  };
}

/** Nothing of another origin, but the gateway's sockets; nothing inline; in no frame. */
function policyFor(sockets: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob: data:",
    ['connect-src', "'self'", ...sockets].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
