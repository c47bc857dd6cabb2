import { createHash } from 'node:crypto';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { BadExtension, readFiles, type ExtensionFile } from './zip.ts';

/** An upload: a zip, or a CRX, which is a zip behind signatures that this service does not need. */
export const UPLOAD_BYTES_MAX = 20 * 1024 ** 2;

/** What is known of an extension. */
export type ExtensionFacts = { extensionId: string; name: string; version: string; sha256: string };

export type ReadExtension = ExtensionFacts & {
  /** What is stored. */
  zip: Buffer;
};

const NAME_MAX = 128;
const VERSION_MAX = 64;
const MANIFEST = 'manifest.json';
const MESSAGES = /^_locales\/[^/]+\/messages\.json$/;
/** What is parsed; the largest of those in Chromium's store have some tens of KiB. */
const PARSED = { bytesMax: 256 * 1024, depthMax: 32 };

/**
 * Reads all of an upload: whatever is wrong with it is found here, and not in a session. It takes
 * up to a second of a core; `extension-reader.ts` has it done by a process of its own.
 * @throws BadExtension
 */
export async function readExtension(upload: Buffer): Promise<ReadExtension> {
  const zip = withoutSignatures(upload);
  let manifest: Manifest | null = null;
  for await (const file of readFiles(zip)) {
    const isParsed = file.path === MANIFEST || MESSAGES.test(file.path);
    if (isParsed) requireSmall(file);
    if (file.path === MANIFEST) manifest = parseManifest(await bytesOf(file));
    else await passOver(file);
  }
  if (manifest === null) throw new BadExtension(`It has no ${MANIFEST} at its root.`);
  const sha256 = createHash('sha256').update(zip).digest('hex');
  return {
    extensionId: `ext_${sha256.slice(0, 32)}`,
    name: await nameOf(manifest, zip),
    version: manifest.version,
    sha256,
    zip,
  };
}

/** The size has been counted by who inflates it. */
function requireSmall({ path, bytes }: ExtensionFile): void {
  if (bytes > PARSED.bytesMax)
    throw new BadExtension(`${path} has more than ${PARSED.bytesMax} bytes.`);
}

async function bytesOf({ content }: ExtensionFile): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(content));
}

async function passOver({ content }: ExtensionFile): Promise<void> {
  for await (const _ of content);
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
async function nameOf({ name, locale }: Manifest, zip: Buffer): Promise<string> {
  const key = /^__MSG_(\w+)__$/.exec(name)?.[1]?.toLowerCase();
  const file = key === undefined ? null : await readFile(zip, `_locales/${locale}/messages.json`);
  if (file === null) return name.slice(0, NAME_MAX);
  const [, message] =
    Object.entries(parse('messages.json', file)).find(([id]) => id.toLowerCase() === key) ?? [];
  const text = asText((message as { message?: unknown } | undefined)?.message);
  return (text?.trim() || name).slice(0, NAME_MAX);
}

/** One file of a zip whose files have all been read; null: it has none of that path. */
async function readFile(zip: Buffer, path: string): Promise<Buffer | null> {
  for await (const file of readFiles(zip)) if (file.path === path) return bytesOf(file);
  return null;
}

function parse(name: string, data: Buffer): Record<string, unknown> {
  try {
    const value = parseForeignJson(data, PARSED);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch (error) {
    if (error instanceof RangeError) throw new BadExtension(`${name}: ${error.message}.`);
  }
  throw new BadExtension(`${name} is not a JSON object.`);
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
