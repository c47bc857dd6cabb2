import { knownFingerprint } from '#src/start/audit-key.ts';
import { createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import type { AuditHead } from '#src/features/audit/head.ts';
import { recordTexts } from '#src/features/audit/records.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { sequenceAt } from '#src/kernel/event-store/load-state.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';
import { textUpTo } from '../../arguments.ts';
import type { Command, Output } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { verifyLines, type InspectRecord, type Verdict } from './verify-lines.ts';

export const verifyAudit: Command = {
  readAlone(options) {
    if (options.has('against-log')) return null;
    const file = options.operand(0, textUpTo(4096));
    const wanted = options.optional('key', textUpTo(64));
    return async () => {
      await requireFile(file);
      const trusted = wanted ?? (await knownFingerprint(readConfig(process.env)));
      return present(await verifyLines(readLines(file)), trusted);
    };
  },
  read(options) {
    const file = options.operand(0, textUpTo(4096));
    const wanted = options.optional('key', textUpTo(64));
    return async (session) => {
      await requireFile(file);
      const trusted = wanted ?? (await knownFingerprint(session.config));
      const log = compareWithStore(session.context, session.records);
      const verdict = await verifyLines(readLines(file), log.inspect);
      return present(verdict.isWhole ? await log.end(verdict) : verdict, trusted);
    };
  },
};

/** Compares the records of a file with those of the event store. */
function compareWithStore(context: CommandContext, records: RawRecords) {
  let stored: AsyncGenerator<string, void, void> | null = null;

  const inspect: InspectRecord = async (_, record, head) => {
    if (stored === null) {
      const { id } = await context.eventStore.info();
      if (id !== head.log) return 'it is of another event store';
      stored = textsOf(records, head);
    }
    const { value } = await stored.next();
    if (value === undefined) return 'the event store no longer has this record';
    return Buffer.from(value).equals(record)
      ? null
      : 'it differs from the record in the event store';
  };
  async function end(verdict: Verdict & { isWhole: true }): Promise<Verdict> {
    const { head } = verdict;
    const rest = await (stored ?? textsOf(records, head)).next();
    if (rest.done !== true)
      return {
        isWhole: false,
        line: head.records + 2,
        reason: 'the event store has one more record here',
      };
    // The head's times and sequences must describe the same span.
    const upTo = await sequenceAt(context, Date.parse(head.to) - 1);
    const reason = `the event store had ${upTo} events by ${head.to}, not ${head.up_to}`;
    return upTo === head.up_to ? verdict : { isWhole: false, line: 1, reason };
  }
  return { inspect, end };
}

async function* textsOf(records: RawRecords, head: AuditHead): AsyncGenerator<string, void, void> {
  for await (const batch of recordTexts(records, head)) yield* batch;
}

async function requireFile(file: string): Promise<void> {
  await access(file).catch((error: unknown) => {
    throw new UsageError(`FILE ${file} cannot be read`, { cause: error });
  });
}

/** @param trusted fingerprint that the signer must have; null: no key is known here */
function present(verdict: Verdict, trusted: string | null): Output {
  if (!verdict.isWhole) {
    const { line, reason } = verdict;
    const text = line === null ? `NOT WHOLE: ${reason}` : `NOT WHOLE: line ${line}: ${reason}`;
    return { json: { whole: false, line, reason }, text, differs: true };
  }
  const { head, fingerprint } = verdict;
  const { records, from, to, organization, exported_at } = head;
  if (trusted !== null && trusted !== fingerprint) {
    const reason = `signed by the key ${fingerprint}, not by ${trusted}`;
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
    `signed by the key ${fingerprint}${trusted === null ? '; no trusted key is known' : ''}`,
  ];
  return { json: { whole: true, fingerprint, head }, text: text.join('\n') };
}

/** Far above any record: NATS takes messages up to 1 MB. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * The lines of a file as bytes. `isEnded` is false for the bytes after the last line feed, and for
 * pieces of a line longer than 16 MiB, which no audit contains.
 */
export async function* readLines(path: string) {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      yield { text: Buffer.concat([...rest, chunk.subarray(from, at)]), isEnded: true };
      rest = [];
      restBytes = 0;
      from = at + 1;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > LINE_BYTES_MAX) {
      yield { text: Buffer.concat(rest), isEnded: false };
      rest = [];
      restBytes = 0;
    }
  }
  const text = Buffer.concat(rest);
  if (text.length > 0) yield { text, isEnded: false };
}
