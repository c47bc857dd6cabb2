import { createHash } from 'node:crypto';
import { BadExtension, readFiles } from './zip.ts';

/** An upload: a zip, or a CRX, which is a zip behind signatures that this service does not need. */
export const UPLOAD_BYTES_MAX = 20 * 1024 ** 2;

export type ReadExtension = {
  extensionId: string;
  name: string;
  version: string;
  sha256: string;
  /** What is stored. */
  zip: Buffer;
};

const NAME_MAX = 128;
const VERSION_MAX = 64;
const MANIFEST = 'manifest.json';

/**
 * Reads all of an upload: whatever is wrong with it is found here, and not in a session.
 * @throws BadExtension
 */
export async function readExtension(upload: Buffer): Promise<ReadExtension> {
  const zip = withoutSignatures(upload);
  let manifest: Manifest | null = null;
  const messages = new Map<string, Buffer>();
  for await (const { path, data } of readFiles(zip)) {
    if (path === MANIFEST) manifest = parseManifest(data);
    if (/^_locales\/[^/]+\/messages\.json$/.test(path)) messages.set(path, data);
  }
  if (manifest === null) throw new BadExtension(`It has no ${MANIFEST} at its root.`);
  const sha256 = createHash('sha256').update(zip).digest('hex');
  return {
    extensionId: `ext_${sha256.slice(0, 32)}`,
    name: nameOf(manifest, messages),
    version: manifest.version,
    sha256,
    zip,
  };
}

/** The key of an extension's zip in the object store. */
export function extensionKey(organizationId: string, extensionId: string): string {
  return `extensions/${organizationId}/${extensionId}`;
}

const CRX_MAGIC = 'Cr24';
const CRX_VERSION = 3;
const CRX_HEADER_AT = 12;

function withoutSignatures(upload: Buffer): Buffer {
  if (upload.subarray(0, 4).toString('latin1') !== CRX_MAGIC) return upload;
  const isWhole = upload.length >= CRX_HEADER_AT;
  if (!isWhole || upload.readUInt32LE(4) !== CRX_VERSION)
    throw new BadExtension('It is a CRX of another version than 3.');
  return upload.subarray(CRX_HEADER_AT + upload.readUInt32LE(8));
}

type Manifest = { name: string; version: string; locale: string | null };

function parseManifest(data: Buffer): Manifest {
  const found = parse(MANIFEST, data);
  const { manifest_version: manifestVersion, name, version, default_locale: locale } = found;
  if (manifestVersion !== 3)
    throw new BadExtension(`${MANIFEST}: manifest_version is not 3, the only one that runs.`);
  if (typeof name !== 'string' || name.trim() === '')
    throw new BadExtension(`${MANIFEST}: name is missing.`);
  // Chromium's own rule.
  if (typeof version !== 'string' || !/^\d{1,5}(\.\d{1,5}){0,3}$/.test(version))
    throw new BadExtension(`${MANIFEST}: version is not one to four numbers with dots.`);
  return { name, version: version.slice(0, VERSION_MAX), locale: asText(locale) };
}

/** The name for people; one that is a message is looked up in the extension's own language. */
function nameOf({ name, locale }: Manifest, messages: ReadonlyMap<string, Buffer>): string {
  const key = /^__MSG_(\w+)__$/.exec(name)?.[1]?.toLowerCase();
  const file = messages.get(`_locales/${locale}/messages.json`);
  if (key === undefined || file === undefined) return name.slice(0, NAME_MAX);
  const [, message] =
    Object.entries(parse('messages.json', file)).find(([id]) => id.toLowerCase() === key) ?? [];
  const text = asText((message as { message?: unknown } | undefined)?.message);
  return (text?.trim() || name).slice(0, NAME_MAX);
}

function parse(name: string, data: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data.toString('utf8').replace(/^\uFEFF/, ''));
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // It is said below.
  }
  throw new BadExtension(`${name} is not a JSON object.`);
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
