import { access } from 'node:fs/promises';
import { readConfig } from '#src/config/config.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { sequenceAt } from '../../../log/past.ts';
import type { Records } from '#src/event-store/raw-records.ts';
import { recordText, type AuditHead } from './chain.ts';
import { noArchive } from './export.ts';
import { knownFingerprint } from './key.ts';
import { linesOf } from '../../audit-lines.ts';
import { verdictOn, type Inspect, type Verdict } from './verify-lines.ts';
import type { Command, Output } from '../../command.ts';
import { Misuse } from '../../errors.ts';
import { asText } from '../../arguments.ts';

export const verifyAudit: Command = {
  name: 'audit verify',
  summary: 'Prove that an exported file is whole and untouched; 1 where it is not',
  operands: ['FILE'],
  options: {
    key: { value: 'FINGERPRINT', meaning: "the key it has to be signed by; default: DATA_DIR's" },
    'against-log': { meaning: 'hold each record against the log, too; needs the service' },
    'against-archive': { meaning: 'the same against its archive (ARCHIVE=on)' },
  },
  readAlone(given) {
    if (given.has('against-log') || given.has('against-archive')) return null;
    const file = given.operand(0, asText(4096));
    const wanted = given.optional('key', asText(64));
    return async () => {
      await requireFile(file);
      const trusted = wanted ?? (await knownFingerprint(readConfig(process.env).dataDir));
      return present(await verdictOn(linesOf(file)), trusted);
    };
  },
  read(given) {
    const file = given.operand(0, asText(4096));
    const wanted = given.optional('key', asText(64));
    return async (session) => {
      await requireFile(file);
      const trusted = wanted ?? (await knownFingerprint(session.config.dataDir));
      const records = given.has('against-archive') ? session.archive : session.records;
      if (records === null) return noArchive;
      const log = compareWith(session.desk, records);
      const verdict = await verdictOn(linesOf(file), log.inspect);
      return present(verdict.isWhole ? await log.end(verdict) : verdict, trusted);
    };
  },
};

/** Reads the log's own records beside those of the file. */
function compareWith(desk: Desk, records: Records) {
  let stored: AsyncGenerator<string, void, void> | null = null;

  const inspect: Inspect = async (_, record, head) => {
    if (stored === null) {
      const { id } = await desk.log.facts();
      if (id !== head.log) return 'it is of another log than this service has';
      stored = textsOf(records, head);
    }
    const { value } = await stored.next();
    if (value === undefined) return 'the log has no such record any more';
    return Buffer.from(value).equals(record) ? null : 'it is not what the log has there';
  };
  async function end(verdict: Verdict & { isWhole: true }): Promise<Verdict> {
    const { head } = verdict;
    const rest = await (stored ?? textsOf(records, head)).next();
    if (rest.done !== true)
      return { isWhole: false, line: head.records + 2, reason: 'the log has one more record here' };
    // The moments are what the head says, and so are the sequences that lie between them.
    const upTo = await sequenceAt(desk, Date.parse(head.to) - 1);
    const reason = `the log reaches up to ${upTo} by ${head.to}, not ${head.up_to}`;
    return upTo === head.up_to ? verdict : { isWhole: false, line: 1, reason };
  }
  return { inspect, end };
}

async function* textsOf(records: Records, head: AuditHead): AsyncGenerator<string, void, void> {
  const { after, up_to: upTo, organization: organizationId } = head;
  for await (const batch of records.read({ after, upTo, organizationId }))
    yield* batch.map(recordText);
}

async function requireFile(file: string): Promise<void> {
  await access(file).catch((error: unknown) => {
    throw new Misuse(`FILE ${file} cannot be read`, { cause: error });
  });
}

/** @param trusted fingerprint that the signer's has to be; null: nobody here knows one */
function present(verdict: Verdict, trusted: string | null): Output {
  if (!verdict.isWhole) {
    const { line, reason } = verdict;
    const text = line === null ? `NOT WHOLE: ${reason}` : `NOT WHOLE: line ${line}: ${reason}`;
    return { json: { whole: false, line, reason }, text, differs: true };
  }
  const { head, fingerprint } = verdict;
  const { records, from, to, organization, exported_at } = head;
  if (trusted !== null && trusted !== fingerprint) {
    const reason = `it is signed by the key ${fingerprint}, not by ${trusted}`;
    return {
      json: { whole: false, line: 1, reason, fingerprint },
      text: `NOT WHOLE: line 1: ${reason}`,
      differs: true,
    };
  }
  const span = `${from ?? 'the first event'} to ${to}`;
  const whose = organization === null ? '' : ` of organization ${organization}`;
  const text = [
    `WHOLE: ${records} records${whose}, ${span}, exported ${exported_at}`,
    `signed by the key ${fingerprint}${trusted === null ? ', which nothing here vouches for' : ''}`,
  ];
  return { json: { whole: true, fingerprint, head }, text: text.join('\n') };
}
