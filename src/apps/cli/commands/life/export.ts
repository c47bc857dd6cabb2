import { rename, writeFile } from 'node:fs/promises';
import { reject } from '#src/kernel/errors.ts';
import { parseId, textUpTo } from '../../arguments.ts';
import type { Command } from '../../command.ts';
import { lifeText } from './life.ts';
import { readLife } from './read-life.ts';

export const exportSession: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    const file = options.optional('out', textUpTo(4096));
    return async ({ context, records, warn }) => {
      const life = await readLife({ eventStore: context.eventStore, records }, id, warn);
      if (life === null) return reject('SESSION_NOT_FOUND', { session_id: id });
      if (file === null) {
        process.stdout.write(lifeText(life));
        return null;
      }
      await writeFile(`${file}.new`, lifeText(life), { mode: 0o600 });
      await rename(`${file}.new`, file);
      const count = life.records.length;
      return {
        json: { file, session_id: id, records: count },
        text: `${count} records written to ${file}; check them with: bss replay ${file}`,
      };
    };
  },
};
