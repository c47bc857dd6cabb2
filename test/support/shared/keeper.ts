/**
 * Runs the service for a process of tests that may end in any way: `node keeper.ts FOLDER`. It ends
 * the service in order once its input ends or it gets SIGTERM, reports an end with an error, and
 * removes the folder.
 *
 * The input is a pipe from the process of tests, which the kernel closes with that process: vitest
 * has no hook for the end of a process that runs many files.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '#test/support/service/program.ts';
import { reportCrash } from '#test/support/service/service-process.ts';

const [folder = ''] = process.argv.slice(2);
const outputFile = join(folder, 'output');
const output = openSync(outputFile, 'a');
const service = spawn(process.execPath, [MAIN], { stdio: ['ignore', output, output] });
writeFileSync(join(folder, 'pid'), String(service.pid));

let isEnding = false;
function end(): void {
  isEnding = true;
  service.kill('SIGTERM');
}
process.stdin.resume().once('end', end);
process.on('SIGTERM', end);

const [code, signal] = (await once(service, 'exit')) as [number | null, string | null];
if (code !== 0 || !isEnding) reportCrash(code ?? signal, readFileSync(outputFile, 'utf8'));
// Where it has ended by itself its NATS, which the kernel ends then, still writes.
rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
process.exit();
