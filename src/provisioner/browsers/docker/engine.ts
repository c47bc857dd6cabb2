import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Docker from 'dockerode';

/** A Docker engine that answers and can run our browsers. */
export type Engine = {
  docker: Docker;
  /** `unix:///path` or `tcp://host:port`. */
  host: string;
  /** Cores that it has. */
  cpus: number;
};

/** Docker browsers cannot be run; the message begins with the variable that would help. */
export class DockerUnavailable extends Error {
  override readonly name = 'DockerUnavailable';
}

/** The longest that the engine may take for its first answer. */
const FIRST_ANSWER_MS = 5_000;
/** How long a start waits for an engine that has just been restarted, or comes up beside it. */
const AWAY_MS = 10_000;
const LOOK_EVERY_MS = 250;
/** The longest for any other short one: under load a start has been seen to take 2 s. */
const ANSWER_MS = 30_000;

/**
 * @throws DockerUnavailable when nothing answers there within some 10 s, or what answers cannot
 * isolate browsers
 */
export async function connectEngine(host: string, signal?: AbortSignal): Promise<Engine> {
  const docker = new Docker(addressOf(host));
  const info = (await firstAnswer(docker, host, signal)) as EngineInfo;
  if (info.OSType !== 'linux')
    throw new DockerUnavailable(`DOCKER_HOST: the engine at ${host} runs no Linux containers.`);
  if (!info.SecurityOptions.some((option) => option.startsWith('name=seccomp')))
    throw new DockerUnavailable(
      `DOCKER_HOST: the engine at ${host} knows no seccomp, which browsers are confined by.`,
    );
  return { docker, host, cpus: info.NCPU };
}

type EngineInfo = { OSType: string; NCPU: number; SecurityOptions: string[] };

async function firstAnswer(docker: Docker, host: string, signal?: AbortSignal): Promise<unknown> {
  const deadline = performance.now() + AWAY_MS;
  for (;;) {
    try {
      return await answered(docker.info(), FIRST_ANSWER_MS);
    } catch (error) {
      signal?.throwIfAborted();
      if (performance.now() > deadline || isNowhere(host))
        throw new DockerUnavailable(
          `DOCKER_HOST: no Docker engine answers at ${host} (${messageOf(error)}). ` +
            'Start one, name another in DOCKER_HOST, or set BROWSERS=process.',
          { cause: error },
        );
    }
    await pause(LOOK_EVERY_MS);
  }
}

/** Whether the engine is there now. */
export async function isAnswering(docker: Docker): Promise<boolean> {
  try {
    await answered(docker.ping(), FIRST_ANSWER_MS);
    return true;
  } catch {
    return false;
  }
}

/** A socket comes and goes with its engine; the folder that it is to be in does not. */
function isNowhere(host: string): boolean {
  const { socketPath } = addressOf(host);
  return socketPath !== undefined && !existsSync(dirname(socketPath));
}

/** Certificates for a `tcp://` engine are taken from DOCKER_CERT_PATH by the client itself. */
function addressOf(host: string): Docker.DockerOptions {
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  const { hostname, port, protocol } = new URL(host);
  const isSecure = protocol === 'https:' || process.env['DOCKER_TLS_VERIFY'] === '1';
  const byDefault = isSecure ? 2376 : 2375;
  return {
    host: hostname,
    port: port === '' ? byDefault : Number(port),
    protocol: isSecure ? 'https' : 'http',
  };
}

/** Bounds one request to the engine; spread it into the request's options. */
export function bounded(signal?: AbortSignal): { abortSignal: AbortSignal } {
  const timeout = AbortSignal.timeout(ANSWER_MS);
  return { abortSignal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]) };
}

/** The same for the requests that take no options: the answer, unless it does not come. */
export async function answered<Answer>(answer: Promise<Answer>, withinMs = ANSWER_MS) {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer in ${withinMs} ms`)), withinMs);
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer));
}

/** The engine's HTTP status where it refused; null where it did not answer. */
export function statusOf(error: unknown): number | null {
  const { statusCode } = error as { statusCode?: unknown };
  return typeof statusCode === 'number' ? statusCode : null;
}

/** What the engine said, without the client's words round it. */
export function messageOf(error: unknown): string {
  const { json, message } = error as { json?: { message?: unknown }; message?: unknown };
  return String(json?.message ?? message ?? error);
}
