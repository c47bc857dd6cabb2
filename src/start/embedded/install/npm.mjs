/** Runs npm for launch.mjs; its output is shown only if it fails. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, dirname, join } from 'node:path';

const OUTPUT_KEPT = 64 * 1024;
/** npm prints the cause first, then pages of usage. */
const ERROR_LINES_MAX = 10;

/** A required installation step failed; the message is for the operator. */
export class CannotInstall extends Error {
  name = 'CannotInstall';
}

/** @throws CannotInstall with npm's first errors, if npm is missing or fails */
export async function npm(args, cwd) {
  const [command, ...first] = npmCommand();
  const child = spawn(command, [...first, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk) => {
    output = (output + chunk).slice(0, OUTPUT_KEPT);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const removeHandlers = endWith(child);
  const problem = await new Promise((resolve) => {
    child.once('error', (error) => resolve(`npm cannot be run (${error.code ?? error.message})`));
    child.once('close', (code) => resolve(code === 0 ? null : errorsOf(output)));
  });
  removeHandlers();
  if (problem !== null) throw new CannotInstall(`npm ${args.join(' ')} failed:\n${problem}`);
}

function errorsOf(output) {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const errors = lines.filter((line) => /^npm (error|ERR!) \S/.test(line));
  return (errors.length > 0 ? errors : lines).slice(0, ERROR_LINES_MAX).join('\n');
}

/**
 * A signal that ends this process kills npm as well (SIGTERM would take npm seconds), so that no
 * installation goes on in the background. The next start repeats a partial installation.
 */
function endWith(child) {
  const ends = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => {
    const end = () => {
      child.kill('SIGKILL');
      process.exit(128 + constants.signals[signal]);
    };
    process.on(signal, end);
    return () => process.off(signal, end);
  });
  return () => ends.forEach((off) => off());
}

/**
 * The npm of this Node: another one may not run under it (Debian's does not), and what it installs
 * depends on its Node. Otherwise the npm that started this process, or the one on PATH.
 */
function npmCommand() {
  const prefix = dirname(dirname(process.execPath));
  const own = join(prefix, 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  if (existsSync(own)) return [process.execPath, own];
  const runBy = process.env.npm_execpath ?? '';
  const cli = join(dirname(runBy), 'npm-cli.js');
  // npm_execpath is npx's file under npx, and another program under other package managers.
  if (/^np[mx]-cli\.js$/.test(basename(runBy)) && existsSync(cli)) return [process.execPath, cli];
  return ['npm'];
}
