import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A real server program, for one test file alone, that can be killed and started again. */
export type RealServer = AsyncDisposable & {
  /** Of its process since the last start. */
  pid(): number;
  /** Kills it without a flush: SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with the same arguments, and waits until it answers. */
  restart(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGHUP'): void;
};

const START_MS = 60_000;

export type ServerProgram = {
  program: string;
  args: readonly string[];
  /** Checks once whether it serves. */
  answers: () => Promise<boolean>;
};

/** @throws Error with its output, if it exits at its start or does not answer within 10 s */
export async function startServer(options: ServerProgram): Promise<RealServer> {
  let server = await launch(options);
  // A test process that ends without disposing leaves no server behind.
  const onExit = () => void server.kill('SIGKILL');
  process.once('exit', onExit);

  async function kill() {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  }
  return {
    pid: () => server.pid ?? 0,
    kill,
    async restart() {
      await kill();
      server = await launch(options);
    },
    signal: (name) => void server.kill(name),
    async [Symbol.asyncDispose]() {
      await kill();
      process.removeListener('exit', onExit);
    },
  };
}

async function launch({ program, args, answers }: ServerProgram): Promise<ChildProcess> {
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [server.stdout, server.stderr])
    stream.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-4_000);
    });
  let failure: Error | null = null;
  server.once('error', (error) => {
    failure = error;
  });
  const deadline = Date.now() + START_MS;
  while (!(await answers())) {
    if (failure !== null) throw failure;
    if (server.exitCode !== null) throw new Error(`${program} ended at its start:\n${said}`);
    if (Date.now() > deadline) throw new Error(`${program} does not answer:\n${said}`);
    await delay(20);
  }
  return server;
}
