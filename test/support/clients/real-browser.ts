import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { createProcessBrowsers } from '#src/browsers/process/process-browsers.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { LAUNCH_MS } from '#test/support/browsers/browsers.fixture.ts';

export const VNC_PASSWORD = 'aB3dE6gH';

/** Real browsers, with their screens, for one test file. */
export async function startRealBrowsers(count: number) {
  const paths = await ensurePrograms(['chromium', 'Xtigervnc'], console.log);
  const stateDir = await mkdtemp(join(tmpdir(), 'gateway-browsers-'));
  const browsers = await createProcessBrowsers({
    chromium: paths.chromium,
    xvnc: paths.Xtigervnc,
    stateDir,
    launchTimeoutMs: LAUNCH_MS,
  });
  const running: RunningBrowser[] = [];
  for (let n = 1; n <= count; n += 1)
    running.push(
      await browsers.launch({
        workloadId: `wl_gateway_${n}`,
        vncPassword: VNC_PASSWORD,
        screen: { width: 800, height: 600 },
      }),
    );
  return {
    running,
    async [Symbol.asyncDispose]() {
      await browsers[Symbol.asyncDispose]();
      await rm(stateDir, { recursive: true });
    },
  };
}
