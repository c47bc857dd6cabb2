import { extensionZip, crxOf } from '#test/support/extensions/extension-zip.ts';
import { corrupted } from './mutations.ts';
import type { Random } from './random.ts';

/** Zips of extensions: one that is fine, and what is none or lies. */
const fine = await extensionZip();
const MANIFEST = { manifest_version: 3, name: 'Fuzz', version: '1.0' };
const ALL = [
  fine,
  crxOf(fine),
  crxOf(fine, 99),
  await extensionZip({ ...MANIFEST, default_locale: 'en' }),
  await extensionZip('{'),
  await extensionZip('['.repeat(50_000)),
  await extensionZip(
    { ...MANIFEST, name: '__MSG_a__', default_locale: 'en' },
    {
      '_locales/en/messages.json': '{"a":{"message":"\u0000"}}',
    },
  ),
  await extensionZip({ ...MANIFEST, name: 'a'.repeat(100_000) }),
  await extensionZip(MANIFEST, { 'zeros.bin': Buffer.alloc(20 * 1024 * 1024) }),
  await extensionZip(
    MANIFEST,
    Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`f${at}.js`, ''])),
  ),
  await extensionZip(MANIFEST, { link: '/etc/passwd' }, { link: 0o120777 }),
  Buffer.from('PK\u0005\u0006'.padEnd(22, '\0'), 'latin1'),
];

/** Half of the times the fine one; of the rest half are corrupted. */
export function extensions(random: Random): Buffer {
  if (random.chance(0.5)) return fine;
  const zip = random.pick(ALL);
  if (random.chance(0.5) || zip.length > 100_000) return zip;
  return random.chance(0.3) ? zip.subarray(0, random.int(zip.length)) : corrupted(random, zip);
}
