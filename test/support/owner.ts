/** A service that supervises the given program, which ignores SIGTERM, until the test kills it. */
import { readFile } from 'node:fs/promises';
import { supervise } from '#src/start/embedded/supervise.ts';

const [folder = '', command = '', ...args] = process.argv.slice(2);

await supervise(
  {
    name: 'stubborn',
    command,
    args,
    pidFile: `${folder}/stubborn.pid`,
    logFile: `${folder}/stubborn.log`,
    answers: async () => (await readFile(`${folder}/stubborn.log`, 'utf8')).includes('deaf'),
    readyMs: 10_000,
  },
  { onRestart: () => {}, onGiveUp: () => {} },
);
console.log('up');
