import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startBidiServer } from '#test/support/suites/bidi-server.ts';
import { tryInstallPython } from '#test/support/clients/python-packages.ts';
import { trySuite } from '#test/support/suites/try-suite.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { startRealService } from '#test/support/service/real-session.ts';

/**
 * The mapper's own tests of the protocol, against sessions of the service. Without their repository
 * or a Python package index nothing is run, and a line says so.
 */
const NAME = 'GoogleChromeLabs/chromium-bidi';
const PACKAGES = [
  ...['anys==0.3.0', 'flask==3.1.3', 'pillow==12.2.0', 'pytest==7.4.2', 'websockets==11.0.3'],
  ...['pytest-asyncio==0.21.1', 'pytest-httpserver==1.0.8', 'pytest-timeout==2.2.0'],
  ...['pytest-rerunfailures==12.0', 'syrupy==4.5.0', 'werkzeug==3.1.6'],
];
const BROWSER = ['close', 'get_client_windows', 'remove_user_context', 'set_client_window_state'];
/**
 * Not those of new user contexts: they set proxies of their own, which no session has, and four of
 * prompts compare events with those of a mapper older than ours, which lack `userContext`. A plain
 * chromedriver fails them, too.
 */
const FOLDERS = ['tests/session', ...BROWSER.map((name) => `tests/browser/test_${name}.py`)];
/** Ours answers `id: null`, as the standard has it; their server leaves the id out. */
const OTHERWISE = ['test_invalid_json', 'test_empty_object'];
/** Of what a newer mapper than ours does. */
const OF_NEWER_MAPPER = [
  'test_subscribeToMultipleChannels_eventsReceivedInProperOrder',
  'test_subscribeWithoutContext_bufferedEventsFromNotClosedContextsAreReturned',
];
const SUITE_MS = 1_500_000;

test(
  'chromium-bidi’s tests of sessions and browsers pass',
  async () => {
    await using folder = await scratchDir();
    const suite = await trySuite(folder.path, NAME, 'TEST_CHROMIUM_BIDI');
    const python = suite === null ? null : await tryInstallPython(folder.path, PACKAGES);
    if (suite === null || python === null) return;
    await using service = await startRealService({ POOL_MIN_IDLE: '1' });
    await using server = await startBidiServer(service.apiUrl);
    const left = [...OTHERWISE, ...OF_NEWER_MAPPER].join(' or ');
    const args = ['-m', 'pytest', '-q', '--timeout=120', '-rf', ...FOLDERS, '-k', `not (${left})`];
    const options = { cwd: suite, timeout: SUITE_MS, maxBuffer: 64 * 1024 * 1024 };
    const env = { ...process.env, PORT: String(server.port) };
    const ran = await promisify(execFile)(python, args, { ...options, env }).catch(
      (error: unknown) => error as { stdout: string },
    );
    const lines = ran.stdout.split('\n');
    expect(lines.filter((line) => /^(?:FAILED|ERROR) /.test(line))).toEqual([]);
    const passed = /(\d+) passed/.exec(lines.findLast((line) => line.includes(' passed')) ?? '');
    expect(Number(passed?.[1])).toBeGreaterThan(20);
  },
  SUITE_MS + 900_000,
);
