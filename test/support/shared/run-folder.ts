import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCertificate } from '#src/roles/gateway/certificate.ts';
import { isRunning } from '#test/support/scratch.ts';
import { eventually } from '#test/support/service/service.ts';

/** From SIGTERM to the end of a service, which has 9.5 s, on a busy machine. */
const ENDED_WITHIN_MS = 60_000;

/**
 * What all processes of a run of tests share, named by variables that they inherit: a certificate
 * for the services that they start, and a file by its process id for each keeper of a service.
 * Disposal ends those keepers, and waits until they are gone.
 */
export async function openRunFolder(): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'bss-run-'));
  const certificate = join(folder, 'certificate');
  await ensureCertificate(certificate);
  process.env['TEST_CERTIFICATE'] = certificate;
  process.env['TEST_KEEPERS'] = folder;
  return {
    async [Symbol.asyncDispose]() {
      const pids = (await readdir(folder)).map(Number).filter(Number.isInteger);
      for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGTERM');
      for (const pid of pids)
        await eventually(() => !isRunning(pid), `the keeper ${pid} ends`, ENDED_WITHIN_MS);
      await rm(folder, { recursive: true });
    },
  };
}
