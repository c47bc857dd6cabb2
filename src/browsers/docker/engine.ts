import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type Docker from 'dockerode';
import { retry } from '#src/kernel/async/retry.ts';
import { within } from '#src/kernel/async/timeout.ts';

/** A Docker engine that answers and can run browsers. */
export type Engine = {
  docker: Docker;
  /** `unix:///path` or `tcp://host:port`. */
  host: string;
  /** Number of its cores. */
  cpus: number;
};

/** Docker browsers cannot run; the message begins with the variable that would help. */
export class DockerUnavailable extends Error {
  override readonly name = 'DockerUnavailable';
}

/** The longest wait for the engine's first answer. */
const FIRST_ANSWER_MS = 5_000;
/** How long a start waits for an engine that restarts or starts at the same time. */
const START_WITHIN_MS = 10_000;
const START_RETRY_MS = 250;
/** The longest wait for any other short request: under load a container's start has taken 2 s. */
const ANSWER_MS = 30_000;
/**
 * The longest wait for what the engine does on its disk or in a container: it has taken more than
 * 30 s while the engine built an image.
 */
export const WORK_MS = 120_000;

/**
 * @throws DockerUnavailable if no engine answers within some 10 s, or the engine cannot isolate
 * browsers
 */
export async function connectEngine(host: string, signal?: AbortSignal): Promise<Engine> {
  // A server of other browsers starts without it: with its own packages it takes 0.1 s to load.
  const { default: DockerClient } = await import('dockerode');
  const docker = new DockerClient(engineAddress(host));
  const info = (await firstAnswer(docker, host, signal)) as EngineInfo;
  if (info.OSType !== 'linux')
    throw new DockerUnavailable(`DOCKER_HOST: the engine at ${host} runs no Linux containers.`);
  if (!info.SecurityOptions.some((option) => option.startsWith('name=seccomp')))
    throw new DockerUnavailable(
      `DOCKER_HOST: the engine at ${host} has no seccomp, which confines browsers.`,
    );
  return { docker, host, cpus: info.NCPU };
}

type EngineInfo = { OSType: string; NCPU: number; SecurityOptions: string[] };

async function firstAnswer(docker: Docker, host: string, signal?: AbortSignal): Promise<unknown> {
  const options = {
    withinMs: START_WITHIN_MS,
    pauseMs: () => START_RETRY_MS,
    isTransient: () => !isSocketFolderMissing(host),
    signal,
  };
  try {
    return await retry(options, () => answered(docker.info(), FIRST_ANSWER_MS));
  } catch (error) {
    signal?.throwIfAborted();
    throw new DockerUnavailable(
      `DOCKER_HOST: no Docker engine answers at ${host} (${messageOf(error)}). ` +
        'Start one, name another in DOCKER_HOST, or set BROWSERS=process.',
      { cause: error },
    );
  }
}

/** Whether the engine answers now. */
export async function isAnswering(docker: Docker): Promise<boolean> {
  try {
    await answered(docker.ping(), FIRST_ANSWER_MS);
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether the folder of the socket is missing: unlike the socket, it does not come with the engine.
 */
function isSocketFolderMissing(host: string): boolean {
  const { socketPath } = engineAddress(host);
  return socketPath !== undefined && !existsSync(dirname(socketPath));
}

/** The client itself reads the certificates for a `tcp://` engine from DOCKER_CERT_PATH. */
function engineAddress(host: string): Docker.DockerOptions {
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

/** A time limit for one request to the engine; spread it into the request's options. */
export function bounded(signal?: AbortSignal, withinMs = ANSWER_MS): { abortSignal: AbortSignal } {
  const timeout = AbortSignal.timeout(withinMs);
  return { abortSignal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]) };
}

/** A time limit for a request that takes no options. @throws Error where no answer comes in time */
export async function answered<Answer>(answer: Promise<Answer>, withinMs = ANSWER_MS) {
  return within(withinMs, answer);
}

/** The HTTP status of an engine's refusal; null where the engine did not answer. */
export function statusOf(error: unknown): number | null {
  const { statusCode } = error as { statusCode?: unknown };
  return typeof statusCode === 'number' ? statusCode : null;
}

/** The engine's own message, without the client's prefix. */
export function messageOf(error: unknown): string {
  const { json, message } = error as { json?: { message?: unknown }; message?: unknown };
  return String(json?.message ?? message ?? error);
}
