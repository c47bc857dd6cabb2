import { promisify } from 'node:util';
import { inflate, type InputType, type ZlibOptions } from 'node:zlib';
import { parseSubject, sessionAnywhere } from '#events/subjects.ts';
import type { RefOf } from '#events/events.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { readSegment, type Segment } from '#src/features/recordings/segment-format.ts';
import type { CommandSession } from '../../command.ts';

/** The session of this id, of whatever organization. */
export async function sessionOf(
  { records, context }: Pick<CommandSession, 'records' | 'context'>,
  id: string,
): Promise<RefOf<'session'> | Rejection> {
  const filter = sessionAnywhere(id);
  const upTo = await context.eventStore.lastSequence();
  for await (const batch of records.read({ filter, after: 0, upTo }))
    for (const { subject } of batch) {
      const aggregate = parseSubject(subject)?.aggregate;
      if (aggregate?.kind === 'session') return aggregate;
    }
  return reject('SESSION_NOT_FOUND', { session_id: id });
}

const inflated = promisify<InputType, ZlibOptions, Buffer>(inflate);
/** A minute of 8 MiB a second, the most that a recording takes. */
const INFLATED = { maxOutputLength: 512 * 1024 ** 2 };

/** Reads a segment. @throws Error where it is gone or no segment */
export async function loadSegment(
  { objects }: Pick<CommandSession, 'objects'>,
  key: string,
): Promise<Segment> {
  const got = await objects.get(key);
  if (got === null) throw new Error(`${key} is gone`);
  return readSegment(await inflated(Buffer.concat(await Array.fromAsync(got.body)), INFLATED));
}
