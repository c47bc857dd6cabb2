import { createHeadReader } from '#src/features/archive/head.ts';
import {
  verifyArchive,
  type ArchiveVerdict,
  type VerifyOptions,
} from '#src/features/archive/verify/verify.ts';
import { openArchiveFiles } from '#src/start/archive/archive-files.ts';
import { archiveKeyPlace, knownFingerprint } from '#src/start/audit-key.ts';
import { readConfig, type Config } from '#src/kernel/config/config.ts';
import { integer, textUpTo } from '../../arguments.ts';
import type { Command, Output } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { formatNumber } from '../../progress-line.ts';

type Asked = { key: string | null; first: number | null; last: number | null };

export const verifyArchiveCommand: Command = {
  readAlone(options) {
    if (!options.has('alone')) return null;
    const asked = readAsked(options);
    return () => verify(readConfig(process.env), asked, { endSequence: 0, head: null });
  },
  read(options) {
    const asked = readAsked(options);
    return async ({ config, context }) => {
      const { firstSequence } = await context.eventStore.info();
      const head = await createHeadReader(context.eventStore)();
      return verify(config, asked, { endSequence: firstSequence - 1, head });
    };
  },
};

function readAsked(options: Parameters<Command['read']>[0]): Asked {
  const segment = integer(1, 999_999);
  return {
    key: options.optional('key', textUpTo(100)),
    first: options.optional('from', segment),
    last: options.optional('to', segment),
  };
}

/** What the event store says: where it begins, which the archive must reach; the archive's end. */
type Known = Required<Pick<VerifyOptions, 'endSequence' | 'head'>>;

async function verify(config: Config, asked: Asked, { endSequence, head }: Known): Promise<Output> {
  const signer = asked.key ?? (await knownFingerprint(archiveKeyPlace(config)));
  if (signer === null)
    throw new UsageError('--key is needed: this data folder has no key, so it has signed nothing');
  const verdict = await verifyArchive(await openArchiveFiles(config.archive.place), {
    signer,
    head,
    ...(asked.first === null ? {} : { first: asked.first }),
    ...(asked.last === null ? { endSequence } : { last: asked.last }),
  });
  return present(verdict, signer);
}

function present({ segments, records, findings }: ArchiveVerdict, signer: string): Output {
  const json = { agrees: findings.length === 0, segments, records, signer, findings };
  const lines = findings.map(({ segment, line, problem }) => {
    const where = line === null ? `segment ${segment}` : `segment ${segment}, line ${line}`;
    return `DIFFERS  ${where}: ${problem}`;
  });
  const counted = `${formatNumber(records)} events in ${formatNumber(segments)} segments`;
  const whole = `${counted} are as they were sealed, signed by the key ${signer}`;
  const text = findings.length === 0 ? whole : [...lines, counted].join('\n');
  return { json, text, differs: findings.length > 0 };
}
