import { backUp, restore } from '#src/start/backup.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { BadBackup, type Manifest } from '#src/features/backup/manifest.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Command, Output } from '../command.ts';
import { textUpTo } from '../arguments.ts';
import { formatNumber } from '../progress-line.ts';

export const backupCommand: Command = {
  readAlone(options) {
    const folder = options.required('to', textUpTo(4096));
    return () =>
      rejectionOnFailure(async () => present('written to', folder, await backUp(config(), folder)));
  },
  read: needsNoService,
};

export const restoreCommand: Command = {
  readAlone(options) {
    const folder = options.required('from', textUpTo(4096));
    return () =>
      rejectionOnFailure(async () =>
        present('restored from', folder, await restore(config(), folder, printProgress)),
      );
  },
  read: needsNoService,
};

async function rejectionOnFailure(work: () => Promise<Output>): Promise<Output | Rejection> {
  try {
    return await work();
  } catch (error) {
    const isRefusal = error instanceof BadBackup || isInUse(error);
    if (!isRefusal || !(error instanceof Error)) throw error;
    return reject('UNAVAILABLE', {}, { message: error.message });
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && error.name === 'DataDirInUse';
}

function present(done: string, folder: string, { takenAt, streams }: Manifest): Output {
  const events = streams.find(({ name }) => name === 'EVENTS')?.state;
  const rows = streams.map(({ name, state, bytes, consumers }) => ({
    stream: name,
    messages: state.messages,
    last_sequence: state.last_seq,
    consumers: consumers.length,
    bytes,
  }));
  const text = [
    `${formatNumber(events?.messages ?? 0)} events ${done} ${folder}, as of ${takenAt}`,
    ...rows.map((row) => `  ${row.stream.padEnd(10)} ${formatNumber(row.messages)} messages`),
  ];
  return { json: { folder, taken_at: takenAt, streams: rows }, text: text.join('\n') };
}

function config() {
  return readConfig(process.env);
}

function printProgress(line: string): void {
  process.stderr.write(`${line}\n`);
}

function needsNoService(): never {
  throw new Error('this command needs no service');
}
