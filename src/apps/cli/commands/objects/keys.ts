import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#src/kernel/config/config.ts';
import { parseMasterKeys } from '#src/kernel/master-keys.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { SEAL_BYTES, sealedWith } from '#src/features/profiles/sealed.ts';
import type { Command } from '../../command.ts';
import { interruptible } from '../../interruptible.ts';

type Row = { key: string; is: 'current' | 'older' | 'unknown'; archives: number };

export const showKeysOfObjects: Command = {
  read() {
    return async ({ config, openObjectSweep }) => {
      const { objects } = await openObjectSweep();
      const counts = await interruptible((signal) => countByKey(objects, signal));
      const ours = await ownKeys(config);
      const rows = [...new Set([...ours, ...counts.keys()])].map((key): Row => {
        const at = ours.indexOf(key);
        const is = at === 0 ? 'current' : at > 0 ? 'older' : 'unknown';
        return { key, is, archives: counts.get(key) ?? 0 };
      });
      const lines = rows.map(({ key, is, archives }) => `${key}  ${is}  ${archives} archives`);
      return { json: rows, text: lines.join('\n') };
    };
  },
};

/** The ids of the keys of MASTER_KEY or of the data folder, the current one first. */
async function ownKeys({ masterKey, dataDir }: Config): Promise<string[]> {
  const kept = () => readFile(join(dataDir, 'master-key'), 'utf8').catch(() => '');
  const text = (masterKey ?? (await kept())).trim();
  return text === '' ? [] : parseMasterKeys(text).all.map(({ id }) => id.toString('hex'));
}

async function countByKey(objects: ObjectStore, signal: AbortSignal): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for await (const { key, bytes } of objects.list('profiles/')) {
    signal.throwIfAborted();
    if (bytes < SEAL_BYTES) continue;
    const found = await objects.get(key, { start: 0, end: SEAL_BYTES - 1 }, { signal });
    if (found === null) continue;
    const id = sealedWith(Buffer.concat(await Array.fromAsync(found.body))).toString('hex');
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
