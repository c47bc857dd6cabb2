import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/**
 * A gateway in a process of at most 256 descriptors. All are in use but for five while a client
 * connects by BiDi: the client and the gateway have two, the browser and the gateway two.
 */
const PROGRAM = `
  import { closeSync, openSync } from 'node:fs';
  import { refusal, startSession, until } from '#test/support/gateway.fixture.ts';
  const site = await startSession({ limits: { bidi: 1 } });
  const taken = [];
  try {
    while (true) taken.push(openSync('/dev/null'));
  } catch (error) {
    if (error.code !== 'EMFILE') throw error;
  }
  for (let n = 0; n < 5; n += 1) closeSync(taken.pop());
  const answers = [];
  for (let n = 0; n < 2; n += 1) {
    const { status, body, retryAfter } = await refusal(site.bidiUrl('s1'));
    answers.push([status, body.error, body.context.part, retryAfter]);
    await until(() => site.browser.sockets.size === 0, 'the browser left alone');
  }
  for (const descriptor of taken) closeSync(descriptor);
  const page = await fetch(site.http + '/viewer/viewer.js');
  await page.arrayBuffer();
  console.log(JSON.stringify({ answers, pids: site.gateway.bidiPids(), page: page.status }));
  console.log(site.logged.join());
  process.exit(0);
`;

test('a gateway without free descriptors refuses BiDi, goes on, and counts no process', async () => {
  const limited = 'ulimit -n 256; exec "$0" --input-type=module -e "$1"';
  const ran = await promisify(execFile)('sh', ['-c', limited, process.execPath, PROGRAM]);
  const [facts = '', logged = ''] = ran.stdout.split('\n');
  const refused = [503, 'UNAVAILABLE', 'bidi', '5'];
  expect(JSON.parse(facts)).toEqual({ answers: [refused, refused], pids: [], page: 200 });
  expect(logged).toContain('a BiDi process could not be started');
});
