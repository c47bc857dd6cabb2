import { backUp, giveBack } from '#src/bootstrap/backup.ts';
import { readConfig } from '#src/config/config.ts';
import { BadBackup, type Manifest } from '#src/backup/manifest.ts';
import { reject, type Rejected } from '#src/errors.ts';
import type { Command, Output } from '../command.ts';
import { asText } from '../arguments.ts';
import { thousands } from '../progress-line.ts';

export const backUpLog: Command = {
  name: 'backup',
  summary: 'Write the whole log to a folder, while the service goes on',
  options: { to: { value: 'DIR', meaning: 'an empty folder, or one that is made' } },
  readAlone(given) {
    const folder = given.required('to', asText(4096));
    return () =>
      refusing(async () => present('written to', folder, await backUp(config(), folder)));
  },
  read: alone,
};

export const restoreLog: Command = {
  name: 'restore',
  summary: 'Make the log again of a backup, where there is none; no service may run',
  options: { from: { value: 'DIR', meaning: 'what bss backup has written' } },
  readAlone(given) {
    const folder = given.required('from', asText(4096));
    return () =>
      refusing(async () => present('restored from', folder, await giveBack(config(), folder, say)));
  },
  read: alone,
};

async function refusing(work: () => Promise<Output>): Promise<Output | Rejected> {
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
    `${thousands(events?.messages ?? 0)} events ${done} ${folder}, as of ${takenAt}`,
    ...rows.map((row) => `  ${row.stream.padEnd(10)} ${thousands(row.messages)} messages`),
  ];
  return { json: { folder, taken_at: takenAt, streams: rows }, text: text.join('\n') };
}

function config() {
  return readConfig(process.env);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function alone(): never {
  throw new Error('it needs no service');
}
