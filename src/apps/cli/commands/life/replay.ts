import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { textUpTo } from '../../arguments.ts';
import type { Command, Output } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { printable } from '../../output.ts';
import { NotALife, parseLife } from './life.ts';
import { replayLife, type Difference, type Replayed } from './replay-life.ts';

export const replay: Command = {
  readAlone(options) {
    const paths = options.everyOperand(textUpTo(4096));
    return () => replayAll(paths);
  },
  read(options) {
    const paths = options.everyOperand(textUpTo(4096));
    return () => replayAll(paths);
  },
};

/** `reason`: why the file is no recorded life. */
type FileReplayed = { file: string } & (Replayed | { reason: string });

async function replayAll(paths: readonly string[]): Promise<Output> {
  const files = (await Promise.all(paths.map(filesOf))).flat();
  if (files.length === 0) throw new UsageError('FILE names no file that ends with .json');
  const replayed: FileReplayed[] = [];
  for (const file of files) replayed.push(await replayFile(file));
  const lines = replayed.flatMap(describe);
  const failed = replayed.filter((one) => !isOk(one)).length;
  const verdict = `${replayed.length - failed} of ${replayed.length} lives are as recorded`;
  return {
    json: { agrees: failed === 0, lives: replayed.map(present) },
    text: [...lines, verdict].map(printable).join('\n'),
    differs: failed > 0,
  };
}

/** The file, or the files of the folder that end with .json, by name. */
async function filesOf(path: string): Promise<string[]> {
  const found = await stat(path).catch((error: unknown) => {
    throw new UsageError(`FILE ${path} cannot be read`, { cause: error });
  });
  if (!found.isDirectory()) return [path];
  const names = await readdir(path);
  return names
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .map((name) => join(path, name));
}

async function replayFile(file: string): Promise<FileReplayed> {
  try {
    return { file, ...replayLife(parseLife(await readFile(file, 'utf8'))) };
  } catch (error) {
    if (error instanceof NotALife) return { file, reason: error.message };
    throw error;
  }
}

function isOk(one: FileReplayed): boolean {
  return !('reason' in one) && one.differences.length === 0 && one.unreadable.length === 0;
}

function present(one: FileReplayed) {
  if ('reason' in one) return { file: one.file, ok: false, reason: one.reason };
  const { file, sessionId, folded, compared, differences, unreadable } = one;
  return {
    file,
    session_id: sessionId,
    ok: isOk(one),
    folded,
    compared,
    differences: differences.map(({ recorded, folded: state, ...where }) => ({
      ...where,
      recorded: recorded ?? null,
      folded: state ?? null,
    })),
    unreadable,
  };
}

/** The full reason of a schema mismatch runs to pages. */
const REASON_MAX = 240;

function describe(one: FileReplayed): string[] {
  if ('reason' in one) return [`UNREADABLE  ${one.file}: ${one.reason}`];
  const { file, sessionId, folded, compared, differences, unreadable } = one;
  const rest = folded === compared ? '' : `, ${folded - compared} folded, not compared`;
  const verdict = isOk(one) ? 'ok     ' : 'DIFFERS';
  return [
    `${verdict}  ${file}: ${sessionId}, ${compared} states compared${rest}`,
    ...differences.map(describeDifference),
    ...unreadable.map(
      ({ sequence, subject, reason }) =>
        `  event ${sequence} (${subject}) cannot be read: ${reason.slice(0, REASON_MAX)}`,
    ),
  ];
}

function describeDifference({ sequence, type, path, recorded, folded }: Difference): string {
  const field = path === '' ? 'the state' : path;
  const values = `recorded ${describeValue(recorded)}, folded ${describeValue(folded)}`;
  return `  event ${sequence} ${type}: ${field}: ${values}`;
}

function describeValue(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
