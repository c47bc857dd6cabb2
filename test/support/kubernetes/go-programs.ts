import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { goVersion, verifiedGoPackage } from '#test/support/suites/go-modules.ts';

/** Programs of a cluster that no package has, built once from the Go module proxy. */
const PROGRAMS = ['helm', 'coredns', 'kube-router'] as const;
export type GoProgram = (typeof PROGRAMS)[number];

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'bss-go-programs');

/** The path of a program; it is built where it is missing, which takes minutes. */
export function goProgram(name: GoProgram): string {
  const version = goVersion(name);
  const folder = join(CACHE, `${name}-${version}`);
  const program = join(folder, name);
  if (existsSync(program)) return program;
  console.log(`Building ${name} ${version} (some minutes)…`);
  mkdirSync(folder, { recursive: true });
  execFileSync('go', ['install', '-trimpath', '-ldflags', '-s -w', verifiedGoPackage(name)], {
    env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  return program;
}

/** Builds those that are missing. */
export function buildGoPrograms(): void {
  for (const name of PROGRAMS) goProgram(name);
}

/** Starts a program that runs until it is disposed of. `said` is the end of its output. */
export function startProgram(
  name: GoProgram,
  args: readonly string[],
  env: Record<string, string> = {},
): { said(): string } & AsyncDisposable {
  const child: ChildProcess = spawn(goProgram(name), args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-8_000)));
  const gone = once(child, 'exit');
  return {
    said: () => said,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await gone;
    },
  };
}
