import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from '#src/start/embedded/run-command.ts';
import { toolFolder, toolName } from '#src/start/embedded/install/tool-folder.mjs';
import { goVersion, verifiedGoPackage } from '#test/support/suites/go-modules.ts';
import { freePort } from './ports.ts';
import { startServer } from './real-server.ts';

/** An S3 server in one program, which keeps its objects in a folder. */
const VERSION = goVersion('versitygw');
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BUILD_MS = 10 * 60_000;
const REGION = 'us-east-1';

/** The path of the server, after building it if it is missing; null where it cannot be built. */
export async function ensureS3Server(print: (line: string) => void): Promise<string | null> {
  const tools = toolFolder(ROOT);
  const folder = join(tools, toolName('versitygw', VERSION));
  const path = join(folder, 'versitygw');
  if (await runs(path)) return path;
  const go = await runCommand(['go', 'version'], { timeoutMs: 10_000 }).catch(() => null);
  if (go?.code !== 0) return null;
  print('building versitygw, an S3 server for tests');
  await mkdir(tools, { recursive: true });
  const stage = await mkdtemp(`${folder}.new-`);
  try {
    const wanted = verifiedGoPackage('versitygw');
    const built = await runCommand(['env', `GOBIN=${stage}`, 'go', 'install', wanted], {
      timeoutMs: BUILD_MS,
    });
    if (await runs(join(stage, 'versitygw'))) {
      await rm(folder, { recursive: true, force: true });
      await rename(stage, folder);
      return path;
    }
    print(`versitygw was not built: ${built.output.slice(-400)}`);
    return null;
  } catch (error) {
    print(`versitygw was not built: ${String(error)}`);
    return null;
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

async function runs(path: string): Promise<boolean> {
  return (await runCommand([path, '--version'], { timeoutMs: 60_000 })).code === 0;
}

/** The server that the test run found; null if there is none. */
export function s3Server(): string | null {
  const path = process.env['TEST_S3_SERVER'] ?? 'none';
  return path === 'none' ? null : path;
}

/** The same as `startS3`, where no setup has built it. @throws Error where it cannot be built */
export async function buildAndStartS3() {
  const program = await ensureS3Server(console.log);
  if (program === null) throw new Error('no S3 server: Go builds versitygw for this test');
  return startS3(program);
}

/** A real S3 server for one test file, with one bucket. */
export async function startS3(program: string) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'bss-s3-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  // The server shows a folder as a bucket.
  const bucket = 'archive';
  await mkdir(join(folder, bucket));
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const credentials = { accessKeyId: 'tester', secretAccessKey: 'secret-of-a-test' };
  const { accessKeyId, secretAccessKey } = credentials;
  const server = stack.use(
    await startServer({
      program,
      args: [
        ...['--port', `127.0.0.1:${port}`, '--access', accessKeyId, '--secret', secretAccessKey],
        ...['--health', '/health', '--quiet', 'posix', folder],
      ],
      answers: () => isHealthy(`${endpoint}/health`),
    }),
  );
  const parts = stack.move();
  return {
    /** What is in the bucket. */
    folder: join(folder, bucket),
    kill: () => server.kill(),
    restart: () => server.restart(),
    options: { bucket, region: REGION, endpoint, credentials },
    /** The variables of a service whose objects are in the bucket. */
    environment: {
      OBJECT_STORE: `s3://${bucket}/objects`,
      ARCHIVE_S3_ENDPOINT: endpoint,
      ARCHIVE_S3_REGION: REGION,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function isHealthy(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
