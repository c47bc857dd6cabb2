import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { chainLine, recordText } from '#src/archive/chain.ts';
import { openAuditKey } from '#src/bootstrap/audit-key.ts';
import { isRejection } from '#src/errors.ts';
import { sequenceAt } from '#src/event-store/load-state.ts';
import type { RawRecords } from '#src/event-store/raw-records.ts';
import { firstHash, type AuditHead, type AuditScope } from './head.ts';
import type { Command, CommandSession } from '../../command.ts';
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
      const scope = await scopeOf(session, { from, to, organization });
      const key = await openAuditKey(session.config.dataDir);
      const head = await writeRecords(session.records, scope, `${file}.records`);
      await writeFile(file, head, await key.sign(JSON.stringify(head)));
      const { fingerprint } = key;
      const text = [
        `${head.records} records written to ${file}`,
        `signed by the key ${fingerprint}; verify with: bss audit verify ${file}`,
      ];
      return { json: { file, fingerprint, head }, text: text.join('\n') };
    };
  },
};

async function scopeOf(
  { context }: CommandSession,
  asked: { from: number | null; to: number | null; organization: string | null },
): Promise<AuditScope> {
  const { from, organization } = asked;
  const to = Math.min(asked.to ?? Infinity, context.now());
  const { id } = await context.eventStore.info();
  return {
    format: 'bss-audit-1',
    log: id,
    organization,
    from: from === null ? null : new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    after: from === null ? 0 : await sequenceAt(context, from - 1),
    up_to: await sequenceAt(context, to - 1),
  };
}

/** Writes the records to a file of their own; the head can be written only after all of them. */
async function writeRecords(
  source: RawRecords,
  scope: AuditScope,
  path: string,
): Promise<AuditHead> {
  let tip = firstHash(scope);
  let count = 0;
  async function* lines() {
    const { after, up_to: upTo, organization: organizationId } = scope;
    for await (const batch of source.read({ after, upTo, organizationId })) {
      let text = '';
      for (const record of batch) {
        const { line, hash } = chainLine(tip, recordText(record));
        text += `${line}\n`;
        tip = hash;
      }
      count += batch.length;
      yield text;
    }
  }
  await pipeline(lines, createWriteStream(path, { mode: 0o600 }));
  return { ...scope, exported_at: new Date().toISOString(), records: count, tip };
}

/** Writes head and records; the file gets its name only once it is complete. */
async function writeFile(file: string, head: AuditHead, signature: string): Promise<void> {
  const [records, unnamed] = [`${file}.records`, `${file}.new`];
  async function* parts() {
    yield `{"head":${JSON.stringify(head)},"signature":"${signature}"}\n`;
    yield* createReadStream(records);
  }
  await pipeline(parts, createWriteStream(unnamed, { mode: 0o600 }));
  await rename(unnamed, file);
  await rm(records);
}
