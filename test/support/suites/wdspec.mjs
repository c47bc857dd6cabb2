// W3C's own tests of WebDriver (wdspec) against /wd/hub, where the machine reaches GitHub and a Python
// package index, or WPT names a checkout of web-platform-tests:
//   BASE=http://127.0.0.1:8080 KEY=... node test/support/suites/wdspec.mjs [folders]
// The tests know no path and no key: a server on loopback adds both. It exits as pytest does.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { BASE = 'http://127.0.0.1:8080', KEY = '', WPT } = process.env;
const REPOSITORY = 'https://github.com/web-platform-tests/wpt';
const CLASSIC = 'webdriver/tests/classic';
const FOLDERS = ['new_session', 'status', 'delete_session'].map((name) => `${CLASSIC}/${name}`);
const PACKAGES = ['pytest==8.2.1', 'pytest-asyncio==0.23.8', 'websockets==12.0'];

function startProxy() {
  const server = createServer((asked, answer) => {
    const headers = { ...asked.headers, host: new URL(BASE).host, authorization: `Bearer ${KEY}` };
    const { method, url } = asked;
    const passed = request(`${BASE}/wd/hub${url}`, { method, headers }, (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
}

/** A checkout without what the tests do not need. */
function checkOut(folder) {
  const into = join(folder, 'wpt');
  const git = (...args) => execFileSync('git', args, { stdio: 'inherit' });
  const shallow = ['--depth', '1', '--filter=blob:none', '--sparse'];
  git('clone', ...shallow, REPOSITORY, into);
  git('-C', into, 'sparse-checkout', 'set', 'webdriver', 'tools/webdriver');
  return into;
}

function runTests(folder, port) {
  const wpt = WPT ?? checkOut(folder);
  execFileSync('python3', ['-m', 'venv', join(folder, 'python')]);
  const python = join(folder, 'python/bin/python');
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...PACKAGES], { stdio: 'inherit' });
  const config = join(folder, 'config.json');
  const asked = { host: '127.0.0.1', port, capabilities: {}, timeout_multiplier: 4 };
  const wptserve = { domains: { '': { '': '127.0.0.1' } }, ports: { http: [80], https: [443] } };
  const platform = { target_platform: 'linux', browser: { binary: null, args: [] } };
  writeFileSync(config, JSON.stringify({ ...asked, ...platform, wptserve, webdriver: {} }));
  const folders = process.argv.length > 2 ? process.argv.slice(2) : FOLDERS;
  const args = ['-m', 'pytest', '-q', '-rf', '-o', 'python_files=*.py', ...folders];
  const paths = [wpt, join(wpt, 'webdriver'), join(wpt, 'tools/webdriver')].join(':');
  const env = { ...process.env, WDSPEC_CONFIG_FILE: config, PYTHONPATH: paths };
  return spawnSync(python, args, { cwd: wpt, env, stdio: 'inherit' }).status ?? 1;
}

if (isMainThread) {
  const folder = mkdtempSync(join(tmpdir(), 'wdspec-'));
  // Its own thread: this one waits for pytest.
  const proxy = new Worker(fileURLToPath(import.meta.url));
  proxy.once('message', (port) => {
    try {
      process.exitCode = runTests(folder, port);
    } finally {
      rmSync(folder, { recursive: true, force: true });
      void proxy.terminate();
    }
  });
} else startProxy();
