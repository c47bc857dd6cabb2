import { expect, test } from 'vitest';
import type { BlackBox } from '#events/session/black-box.ts';
import { describeBlackBox } from '#src/kernel/history/describe-black-box.ts';

const at = (second: number) => new Date(1_795_000_000_000 + second * 1000).toISOString();

test.each<[BlackBox | undefined, string[]]>([
  [undefined, []],
  [{}, []],
  [
    {
      address: 'https://shop.test/pay',
      consoleErrors: [
        { at: at(1), text: 'early' },
        { at: at(3), text: 'late\n    at line 1', address: 'https://shop.test/app.js' },
      ],
      exceptions: [{ at: at(2), text: 'Uncaught TypeError: boom' }],
    },
    [
      'the page’s last error was: late (https://shop.test/app.js)',
      'the last page was https://shop.test/pay',
    ],
  ],
  [
    {
      failedRequests: [{ at: at(1), text: '404', address: 'https://a.test/x' }],
      dialogs: [{ at: at(1), kind: 'confirm', text: 'Sure?' }],
      pageCrashes: 2,
      signal: 'SIGKILL',
      exitCode: 137,
      outOfMemory: true,
      memoryPeakBytes: 300 * 1024 ** 2,
    },
    [
      'the last request that failed: 404 (https://a.test/x)',
      'its last confirm was open: Sure?',
      '2 pages crashed before the end',
      'the browser ended with signal SIGKILL, exit code 137',
      'the kernel had no memory left for it',
      'the browser used up to 300 MiB',
    ],
  ],
])('the black box %j gives the lines %j', (box, lines) => {
  expect(describeBlackBox(box)).toEqual(lines);
});
