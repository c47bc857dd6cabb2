import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isRejection } from '#src/kernel/errors.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { BSS } from '#test/support/service/program.ts';
import { tryHere } from './command-here.ts';
import { eventually, type Answer, type Service } from '#test/support/service/service.ts';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));

/** Result of a command: its exit code (null: a signal ended it) and its output. */
export type CommandResult = { code: number | null; stdout: string; stderr: string };

/** Runs `bss` on the service; one Node process for each command. */
export async function bss(service: Service, ...args: string[]): Promise<CommandResult> {
  return bssWith({ DATA_DIR: service.dataDir }, ...args);
}

export async function bssWith(
  env: Record<string, string>,
  ...args: string[]
): Promise<CommandResult> {
  return run(env, process.execPath, [BSS, ...args]);
}

/** Runs the command as an operator does in a checkout. */
export async function bssOfCheckout(
  env: Record<string, string>,
  ...args: string[]
): Promise<CommandResult> {
  return run(env, join(TOP, 'bss'), args);
}

/** Runs the command by the name that npm links. */
export async function npxBss(service: Service, ...args: string[]): Promise<CommandResult> {
  // npx keeps where the program of a folder is, also of an earlier checkout in that folder.
  await using cache = await scratchDir();
  const env = { DATA_DIR: service.dataDir, npm_config_cache: cache.path };
  return await run(env, 'npx', ['--no', '--', 'bss', ...args]);
}

/**
 * The JSON of a command that succeeds, which runs in this process if it can.
 * @throws Error if its exit code would not be 0
 */
export async function json(service: Pick<Service, 'dataDir'>, ...args: string[]): Promise<unknown> {
  const env = { DATA_DIR: service.dataDir };
  const outcome = await tryHere(env, ...args);
  if (outcome === null) {
    const { code, stdout, stderr } = await bssWith(env, ...args, '--json');
    if (code !== 0) throw new Error(`bss ${args.join(' ')}: ${code} ${stderr}`);
    return JSON.parse(stdout) as unknown;
  }
  if (isRejection(outcome) || outcome.differs === true)
    throw new Error(`bss ${args.join(' ')}: ${JSON.stringify(outcome)}`);
  // What a program would read: no undefined, dates as text.
  return JSON.parse(JSON.stringify(outcome.json)) as unknown;
}

export async function newOrganization(service: Service, ...options: string[]): Promise<string> {
  const created = await json(service, 'orgs', 'create', '--name', 'Acme', ...options);
  return (created as { organization_id: string }).organization_id;
}

/** Issues a key to the user ann; the API may not know it yet. */
export async function newKey(service: Service, organization: string, role: string) {
  const options = ['--org', organization, '--role', role, '--user', 'ann'];
  const issued = await json(service, 'keys', 'issue', ...options);
  return issued as { key_id: string; api_key: string };
}

/** Resolves once the API answers requests with the key with this status. */
export async function untilAnswered(service: Service, key: string, status: number) {
  const ask = async () => (await asKey(service, key, 'GET', '/api/status')).status === status;
  await eventually(ask, `the key is answered ${status}`);
}

/** Creates a session of 30 minutes with the key. */
export async function create(service: Service, key: string): Promise<Answer> {
  return asKey(service, key, 'POST', '/api/sessions', { duration: '30m' });
}

export async function asKey(
  service: Service,
  key: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return service.request(method, path, body, { authorization: `Bearer ${key}` });
}

/** Waits for the command's end without a time limit; a hung one is ended with the test process. */
async function run(
  env: Record<string, string>,
  program: string,
  args: string[],
): Promise<CommandResult> {
  const child = spawn(program, args, {
    cwd: TOP,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout.setEncoding('utf8').reduce((all: string, text: string) => all + text, ''),
    child.stderr.setEncoding('utf8').reduce((all: string, text: string) => all + text, ''),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  process.off('exit', kill);
  return { code, stdout, stderr };
}

/** Runs `bss events tail` until disposal; `next` resolves with its next line. */
export function tailing(service: Service, ...options: string[]) {
  const child = spawn(process.execPath, [BSS, 'events', 'tail', ...options], {
    env: { ...process.env, DATA_DIR: service.dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    errors: () => errors,
    ended: once(child, 'exit') as Promise<[number | null, string | null]>,
    async next(): Promise<string> {
      const { value } = (await lines.next()) as { value: string | undefined };
      if (value === undefined) throw new Error(`bss events tail ended: ${errors}`);
      return value;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}
