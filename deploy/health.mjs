/**
 * The image's health check: exits with 0 if this container's process serves. It does not look at the
 * rest of the service: restarting a healthy process would not help.
 */
import { readFile } from 'node:fs/promises';
import { request as plain } from 'node:http';
import { request as secured } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';

const WITHIN_MS = 3_000;
const UNVERIFIED = { rejectUnauthorized: false };
const { DATA_DIR = '.data', GATEWAY_PORT = '8081', METRICS_PORT } = process.env;

setTimeout(() => end('no answer in 3 s'), WITHIN_MS).unref();
// Written once all roles of the process run, and removed at its end.
const runtime = await readRuntime();
if (runtime === null) end('it has not started yet');
else if (runtime.api_url !== null) askApi(runtime.api_url);
else if (METRICS_PORT) ask(`http://127.0.0.1:${METRICS_PORT}/metrics`, () => true);
else if (runtime.gateway_ws_url !== null) tryPort(Number(GATEWAY_PORT));

async function readRuntime() {
  try {
    const runtime = JSON.parse(await readFile(join(DATA_DIR, 'runtime.json'), 'utf8'));
    process.kill(runtime.pid, 0);
    return runtime;
  } catch {
    return null;
  }
}

function askApi(url) {
  const { protocol, port } = new URL(url);
  ask(`${protocol}//127.0.0.1:${port}/api/health`, (status) => status === 200);
}

/** An answer says that the process still turns; that of the metrics may be a refusal. */
function ask(url, isWell) {
  const asked = (url.startsWith('https:') ? secured : plain)(url, UNVERIFIED, (answer) => {
    answer.resume();
    if (isWell(answer.statusCode)) process.exit(0);
    end(`${new URL(url).pathname} answers ${answer.statusCode}`);
  });
  asked.on('error', (error) => end(error.message));
  asked.end();
}

function tryPort(port) {
  const socket = connect({ host: '127.0.0.1', port }, () => process.exit(0));
  socket.on('error', (error) => end(error.message));
}

function end(why) {
  process.stdout.write(`${why}\n`);
  process.exit(1);
}
