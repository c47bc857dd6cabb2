import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { isRejected, reject } from '#src/errors.ts';
import { sequenceAt } from '../../../log/past.ts';
import type { Records } from '#src/event-store/raw-records.ts';
import { beginOf, lineOf, recordText, type AuditHead, type AuditScope } from './chain.ts';
import { openAuditKey } from './key.ts';
import type { Command, CommandSession } from '../../command.ts';
import { Misuse } from '../../errors.ts';
import { asId, asText, asTimeOrDate } from '../../arguments.ts';
import { findOrganization } from '../../organization.ts';

export const exportAudit: Command = {
  name: 'audit export',
  summary: 'Write a piece of the log to a file that proves itself: chained, and signed',
  options: {
    from: { value: 'TIME', meaning: 'RFC 3339 or a date in UTC; default: from the first event on' },
    to: { value: 'TIME', meaning: 'up to there, not included; default: now' },
    org: { value: 'ID', meaning: 'one organization alone; default: everything' },
    archive: { meaning: 'read the archive (ARCHIVE=on) in place of the log' },
    out: { value: 'FILE', meaning: 'where it is written; what is there is replaced' },
  },
  read(given) {
    const [from, to] = [given.optional('from', asTimeOrDate), given.optional('to', asTimeOrDate)];
    const organization = given.optional('org', asId);
    const file = given.required('out', asText(4096));
    if (from !== null && to !== null && from > to) throw new Misuse('--from is after --to');
    return async (session) => {
      if (organization !== null) {
        const known = await findOrganization(session.desk.log, organization);
        if (isRejected(known)) return known;
      }
      const scope = await scopeOf(session, { from, to, organization });
      const key = await openAuditKey(session.config.dataDir);
      const source = given.has('archive') ? session.archive : session.records;
      if (source === null) return noArchive;
      const head = await writeRecords(source, scope, `${file}.records`);
      await writeFile(file, head, await key.sign(JSON.stringify(head)));
      const { fingerprint } = key;
      const text = [
        `${head.records} records of the log written to ${file}`,
        `signed with the key ${fingerprint}; bss audit verify ${file} proves it`,
      ];
      return { json: { file, fingerprint, head }, text: text.join('\n') };
    };
  },
};

/** Where the archive is asked for, and there is none. */
export const noArchive = reject(
  'UNAVAILABLE',
  {},
  { message: 'The log has no archive; the service makes one with ARCHIVE=on.' },
);

async function scopeOf(
  { desk }: CommandSession,
  asked: { from: number | null; to: number | null; organization: string | null },
): Promise<AuditScope> {
  const { from, organization } = asked;
  const to = Math.min(asked.to ?? Infinity, desk.now());
  const { id } = await desk.log.facts();
  return {
    format: 'bss-audit-1',
    log: id,
    organization,
    from: from === null ? null : new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    after: from === null ? 0 : await sequenceAt(desk, from - 1),
    up_to: await sequenceAt(desk, to - 1),
  };
}

/** The records first, as their head can be written only when all of them are known. */
async function writeRecords(source: Records, scope: AuditScope, path: string): Promise<AuditHead> {
  let tip = beginOf(scope);
  let count = 0;
  async function* lines() {
    const { after, up_to: upTo, organization: organizationId } = scope;
    for await (const batch of source.read({ after, upTo, organizationId })) {
      let text = '';
      for (const record of batch) {
        const { line, hash } = lineOf(tip, recordText(record));
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

/** The whole file, or none: it takes its name when it is complete. */
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
