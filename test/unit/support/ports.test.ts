import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { freePorts } from '#test/support/servers/ports.ts';

const PORTS = new URL('../../support/servers/ports.ts', import.meta.url).href;
/** The whole range of a worker. */
const ALL = 390;

/** Another process of tests, with the same range: it reserves ports until its input ends. */
function reserving(count: number) {
  const program = `
    const { freePorts } = await import('${PORTS}');
    console.log(JSON.stringify(await freePorts(${count})));
    process.stdin.resume().once('end', () => process.exit());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, VITEST_POOL_ID: '3' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return { child, answer: answerOf(child) };
}

async function answerOf({ stdout }: ChildProcess): Promise<number[]> {
  if (stdout === null) throw new Error('it has no output');
  const [line] = (await once(createInterface({ input: stdout }), 'line')) as [string];
  return JSON.parse(line) as number[];
}

async function end(child: ChildProcess, signal?: 'SIGKILL'): Promise<void> {
  const ended = once(child, 'exit');
  if (signal === undefined) child.stdin?.end();
  else child.kill(signal);
  await ended;
}

test('processes with one range get different ports, until one ends in whatever way', async () => {
  const [one, other] = [reserving(30), reserving(30)];
  const ports = (await Promise.all([one.answer, other.answer])).flat();
  expect(new Set(ports).size).toBe(60);
  const third = reserving(ALL);
  expect((await third.answer).filter((port) => ports.includes(port))).toEqual([]);
  await Promise.all([end(one.child), end(other.child, 'SIGKILL'), end(third.child)]);
  const fourth = reserving(ALL);
  const again = await fourth.answer;
  // Another run on this machine may take some of them at any time.
  for (const ofOne of [ports.slice(0, 30), ports.slice(30)])
    expect(ofOne.some((port) => again.includes(port))).toBe(true);
  await end(fourth.child);
});

test('a process gets a port again only after all others', async () => {
  const ports = await freePorts(40);
  expect(new Set(ports).size).toBe(40);
});
