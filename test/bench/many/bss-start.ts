import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { startService } from '#test/support/service/service.ts';
import { atMost, row, summarize, timed, type Samples, type Verdict } from '../samples.ts';

const BSS = fileURLToPath(new URL('../../../bss', import.meta.url));
const ROUNDS = 20;
/** The first calls fill the folder of compiled code. */
const WARM_UP_ROUNDS = 2;
const RATIO_MAX = 2;

const run = promisify(execFile);

/** The whole of a call of `bss`, from its start to its end, beside a Node that does nothing. */
export async function benchBssStart(print: (line: string) => void): Promise<Verdict[]> {
  await using service = await startService({ LOG_LEVEL: 'warn' });
  const env = environment(service.dataDir);
  const calls: Record<string, () => Promise<unknown>> = {
    'node -e 0': () => run(process.execPath, ['-e', '0'], { env }),
    'bss --version': () => run(BSS, ['--version'], { env }),
    'bss --help': () => run(BSS, ['--help'], { env }),
    'bss sql --help': () => run(BSS, ['sql', '--help'], { env }),
    'bss orgs list (event store)': () => run(BSS, ['orgs', 'list'], { env }),
    'bss projections list (and Redis)': () => run(BSS, ['projections', 'list'], { env }),
  };
  const times = new Map(Object.keys(calls).map((name) => [name, [] as number[]]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1)
    for (const [name, call] of Object.entries(calls)) {
      const { ms } = await timed(call);
      if (round >= WARM_UP_ROUNDS) times.get(name)?.push(ms);
    }
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  const samples = new Map<string, Samples>();
  for (const [name, measured] of times) {
    samples.set(name, summarize(measured));
    print(row(name, summarize(measured)));
  }
  const p50 = (name: string) => samples.get(name)?.p50 ?? Number.NaN;
  return ['bss --version', 'bss --help', 'bss sql --help'].map((name) =>
    atMost(`${name} ÷ node -e 0, p50`, p50(name) / p50('node -e 0'), RATIO_MAX),
  );
}

/** As an operator's shell has it: no npm around it, and compiled code where bss keeps it. */
function environment(dataDir: string): NodeJS.ProcessEnv {
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const none = { npm_lifecycle_event: undefined, NODE_COMPILE_CACHE: undefined };
  return { ...process.env, ...none, DATA_DIR: dataDir, PATH };
}
