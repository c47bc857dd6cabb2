import { openAsBlob } from 'node:fs';
import { access } from 'node:fs/promises';
import { parseId, textUpTo } from '../arguments.ts';
import { byApi } from '../by-api.ts';
import type { Command } from '../command.ts';
import { formatTable, printable } from '../output.ts';

const PATH_LENGTH_MAX = 4096;

export const listExtensions: Command = byApi(() => async ({ extensions }) => {
  const all = await extensions.list();
  const rows = all.map(({ id, name, version, bytes, uploaded_at: at, user_id: by }) => {
    return [id, name, version, String(bytes), at, by];
  });
  const heads = ['EXTENSION', 'NAME', 'VERSION', 'BYTES', 'UPLOADED', 'BY'];
  return { json: all, text: formatTable(heads, rows).join('\n') };
});

export const uploadExtension: Command = byApi((options) => {
  const file = options.operand(0, textUpTo(PATH_LENGTH_MAX));
  return async ({ extensions }) => {
    // What is wrong with the file, a blob would not tell.
    await access(file);
    const uploaded = await extensions.upload(await openAsBlob(file));
    const { id, name, version } = uploaded;
    return { json: uploaded, text: printable(`${id}: ${name} ${version}`) };
  };
});

export const removeExtension: Command = byApi((options) => {
  const id = options.operand(0, parseId);
  return async ({ extensions }) => {
    await extensions.remove(id);
    return { json: { extension_id: id }, text: `extension ${id} is removed` };
  };
});
