import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseId, textUpTo } from '../arguments.ts';
import { byApi } from '../by-api.ts';
import type { Command } from '../command.ts';
import { formatTable, printable } from '../output.ts';

/** The longest path of Linux. */
const PATH_LENGTH_MAX = 4096;
const NAME_LENGTH_MAX = 255;

export const listFiles: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  return async ({ sessions }) => {
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
  return async ({ sessions }) => {
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
  return async ({ sessions }) => {
    const file = await sessions.uploadFile(id, from, name === null ? {} : { name });
    const text = `${file.bytes} bytes; in the browser: ${printable(file.path)}`;
    return { json: file, text };
  };
});

export const removeFile: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  const name = options.operand(1, textUpTo(NAME_LENGTH_MAX));
  return async ({ sessions }) => {
    await sessions.removeFile(id, name);
    return { json: { session_id: id, name }, text: `${printable(name)} is removed` };
  };
});
