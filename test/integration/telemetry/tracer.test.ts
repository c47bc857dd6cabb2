import { pino } from 'pino';
import { expect, test } from 'vitest';
import { openTracer } from '#src/kernel/telemetry/open-tracer.ts';
import { isTraceparent } from '#src/kernel/telemetry/tracer.ts';
import { eventually } from '#test/support/service/service.ts';
import { sourceFiles } from '#test/support/sources/source-files.ts';
import { startCollector } from '#test/support/servers/trace-collector.ts';

const log = pino({ level: 'silent' });
const roles = 'all';
/** The bound on waiting spans, and the spans that are being sent beside it. */
const KEPT_MAX = 2_048 + 512;

test('without a collector there is no tracer, and its modules are not loaded', async () => {
  expect(await openTracer({ endpoint: null, roles, log })).toBeNull();
  const users = sourceFiles().filter(
    ({ path, imports }) =>
      path.startsWith('src/') && imports.some((name) => name.startsWith('@opentelemetry/')),
  );
  expect(users.map(({ path }) => path)).toEqual(['src/kernel/telemetry/trace-otlp.ts']);
  const loaders = sourceFiles().filter(({ imports }) =>
    imports.includes('src/kernel/telemetry/trace-otlp.ts'),
  );
  expect(loaders.map(({ path }) => path)).toEqual(['src/kernel/telemetry/open-tracer.ts']);
  const code = loaders[0]?.code;
  expect(code).toContain("() => import('./trace-otlp.ts')");
  expect(code).not.toMatch(/from '\.\/trace-otlp\.ts'/);
});

test('spans that the collector does not take are kept up to a bound', async () => {
  await using collector = await startCollector();
  collector.hang();
  const tracer = await openTracer({ endpoint: collector.endpoint, roles, log });
  if (tracer === null) throw new Error('no tracer');
  for (let count = 0; count < 3 * KEPT_MAX; count += 1)
    tracer.begin('work', { kind: 'internal' }).end();
  await eventually(() => collector.spans().length > 0, 'a batch has come', 60_000);
  collector.answer();
  await tracer[Symbol.asyncDispose]();
  expect(collector.spans().length).toBeLessThanOrEqual(KEPT_MAX);
  expect(collector.spans().length).toBeGreaterThan(0);
});

test('ending a span ends its children', async () => {
  await using collector = await startCollector();
  const tracer = await openTracer({ endpoint: collector.endpoint, roles, log });
  const whole = tracer?.begin('whole', { kind: 'server' });
  const part = whole?.begin('part');
  part?.begin('part of the part');
  whole?.end();
  part?.end();
  await tracer?.[Symbol.asyncDispose]();
  // On a busy machine they may come after the second for which an end waits.
  const spans = await eventually(
    () => collector.spans().length >= 3 && collector.spans(),
    'all spans have come',
  );
  expect(spans.map(({ name }) => name).toSorted()).toEqual(['part', 'part of the part', 'whole']);
  const idOf = (name: string) => spans.find((span) => span.name === name)?.spanId;
  expect(spans.find(({ name }) => name === 'part')?.parentSpanId).toBe(idOf('whole'));
  expect(spans.find(({ name }) => name === 'part of the part')?.parentSpanId).toBe(idOf('part'));
});

test.each([
  ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', true],
  ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00', true],
  ['00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01', false],
  ['ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', false],
  ['00-00000000000000000000000000000000-00f067aa0ba902b7-01', false],
  ['00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01', false],
  ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7', false],
  ['', false],
  [undefined, false],
])('%s is a traceparent: %s', (text, is) => expect(isTraceparent(text)).toBe(is));
