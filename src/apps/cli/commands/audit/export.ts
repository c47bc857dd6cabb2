import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { firstHash, firstLine, type AuditHead, type AuditScope } from '#src/features/audit/head.ts';
import { chainedLines } from '#src/features/audit/records.ts';
import { scopeOf } from '#src/features/audit/scope.ts';
import { openAuditKey } from '#src/start/audit-key.ts';
import { isRejection } from '#src/kernel/errors.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';
import type { Command } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { parseId, textUpTo, parseTimeOrDate } from '../../arguments.ts';
import { findOrganization } from '../../organization.ts';

export const exportAudit: Command = {
  read(options) {
    const [from, to] = [
      options.optional('from', parseTimeOrDate),
      options.optional('to', parseTimeOrDate),
    ];
    const organization = options.optional('org', parseId);
    const file = options.required('out', textUpTo(4096));
    if (from !== null && to !== null && from > to) throw new UsageError('--from is after --to');
    return async (session) => {
      if (organization !== null) {
        const known = await findOrganization(session.context.eventStore, organization);
        if (isRejection(known)) return known;
      }
      const scope = await scopeOf(session.context, { from, to, organization });
      const key = await openAuditKey(session.config);
      const written = await writeRecords(session.records, scope, `${file}.records`);
      const { head, line } = await firstLine(scope, written, key);
      await writeFile(file, line);
      const { fingerprint } = key;
      const text = [
        `${head.records} records written to ${file}`,
        `signed by the key ${fingerprint}; verify with: bss audit verify ${file}`,
      ];
      return { json: { file, fingerprint, head }, text: text.join('\n') };
    };
  },
};

/** Writes the records to a file of their own; the head can be written only after all of them. */
async function writeRecords(
  source: RawRecords,
  scope: AuditScope,
  path: string,
): Promise<Pick<AuditHead, 'records' | 'tip'>> {
  const written = { records: 0, tip: firstHash(scope) };
  async function* lines() {
    for await (const { text, records, tip } of chainedLines(source, scope)) {
      Object.assign(written, { records, tip });
      yield text;
    }
  }
  await pipeline(lines(), createWriteStream(path, { mode: 0o600 }));
  return written;
}

/** Writes head and records; the file gets its name only once it is complete. */
async function writeFile(file: string, firstLine: string): Promise<void> {
  const [records, unnamed] = [`${file}.records`, `${file}.new`];
  async function* parts() {
    yield firstLine;
    yield* createReadStream(records);
  }
  await pipeline(parts, createWriteStream(unnamed, { mode: 0o600 }));
  await rename(unnamed, file);
  await rm(records);
}
