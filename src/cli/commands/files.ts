import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { findApi, ServiceNotFoundError } from '#src/bootstrap/find-service.ts';
import { createClient, NoAnswer, ServiceError, type Sessions } from '#src/client/client.ts';
import { readConfig } from '#src/config/config.ts';
import { reject, type Rejection } from '#src/errors.ts';
import { parseId, textUpTo } from '../arguments.ts';
import type { Arguments, Command, Output } from '../command.ts';
import { UsageError } from '../errors.ts';
import { formatTable, printable } from '../output.ts';

/** The longest path of Linux. */
const PATH_LENGTH_MAX = 4096;
const NAME_LENGTH_MAX = 255;

export const listFiles: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  return async (sessions) => {
    const files = await sessions.listFiles(id);
    const rows = files.map(({ name, bytes, created_at: at, origin, sha256 }) => {
      return [name, String(bytes), origin, at, sha256];
    });
    const heads = ['NAME', 'BYTES', 'ORIGIN', 'SINCE', 'SHA-256'];
    return { json: files, text: formatTable(heads, rows).join('\n') };
  };
});

export const getFile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  const name = options.operand(1, textUpTo(NAME_LENGTH_MAX));
  const to = options.optional('out', textUpTo(PATH_LENGTH_MAX));
  return async (sessions) => {
    const file = await sessions.downloadFile(id, name);
    if (to === null) {
      // Stdout stays open: what else is printed comes after it.
      await pipeline(Readable.from(file.body), process.stdout, { end: false });
      return null;
    }
    await file.saveTo(to);
    const { bytes, sha256 } = file;
    return {
      json: { name, bytes, sha256, file: to },
      text: `${bytes} bytes of ${printable(name)} written to ${to}`,
    };
  };
});

export const putFile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  const from = options.operand(1, textUpTo(PATH_LENGTH_MAX));
  const name = options.optional('name', textUpTo(NAME_LENGTH_MAX));
  return async (sessions) => {
    const file = await sessions.uploadFile(id, from, name === null ? {} : { name });
    const text = `${file.bytes} bytes; in the browser: ${printable(file.path)}`;
    return { json: file, text };
  };
});

export const removeFile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  const name = options.operand(1, textUpTo(NAME_LENGTH_MAX));
  return async (sessions) => {
    await sessions.removeFile(id, name);
    return { json: { session_id: id, name }, text: `${printable(name)} is removed` };
  };
});

type ApiAction = (sessions: Sessions) => Promise<Output | null>;

/** A command that asks the API, as the key's user, and needs nothing else of the service. */
function byApi(read: (options: Arguments) => ApiAction): Command {
  return {
    read: () => {
      throw new Error('it asks the API alone');
    },
    readAlone(options) {
      const act = read(options);
      const url = options.optional('url', parseUrl);
      return () => ask(act, url);
    },
  };
}

async function ask(act: ApiAction, given: string | null): Promise<Output | Rejection | null> {
  const apiKey = process.env['BSS_API_KEY'] ?? '';
  if (apiKey === '')
    return reject('UNAUTHORIZED', {}, { message: 'BSS_API_KEY is not set: an API key.' });
  const url = given ?? (process.env['API_URL'] || (await findApi(readConfig(process.env))));
  try {
    return await act(createClient({ url, apiKey }).sessions);
  } catch (error) {
    if (error instanceof ServiceError)
      return reject(error.error, error.context, { message: error.message });
    if (error instanceof NoAnswer) throw new ServiceNotFoundError(error.message, { cause: error });
    // Of this machine's files: what the system says is all there is to say.
    if ((error as NodeJS.ErrnoException).code !== undefined)
      return reject('INVALID_REQUEST', {}, { message: (error as Error).message });
    throw error;
  }
}

function parseUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new UsageError('is no address, as http://127.0.0.1:8080');
  return text;
}
