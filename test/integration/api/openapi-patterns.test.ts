import * as fc from 'fast-check';
import { Compile } from 'typebox/schema';
import { describe, expect, test } from 'vitest';
import type { DocumentSchema } from '#src/roles/api/docs/openapi-document.ts';
import { formatDuration, parseDuration } from '#src/kernel/domain/session/duration.ts';
import { readOpenApi } from '#src/start/read-openapi.ts';
import { runs } from '#test/support/seeds/seeds.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The service accepts exactly what the document's patterns accept. */

const { beforeAll, afterAll } = useVirtualTime();

const { paths, components } = await readOpenApi();

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
  // Late enough that no moment that can be written is in the future.
  app.pass(1_000 * 366 * 86_400_000);
});
afterAll(() => app?.[Symbol.asyncDispose]());

/** Each parameter with the request that sends it; the requested moment is before any event. */
const parameters = [
  ['/api/sessions', 'label', '/api/sessions?label='],
  ['/api/sessions', 'as_of', '/api/sessions?as_of='],
  ['/api/sessions/{id}', 'as_of', '/api/sessions/ses_none?as_of='],
  ['/api/status', 'as_of', '/api/status?as_of='],
  ['/api/usage', 'to', '/api/usage?to='],
  ['/api/usage', 'after', '/api/usage?from=2026-11-01&to=2026-11-02&after='],
] as const;

describe.each(parameters)('GET %s %s', (path, name, request) => {
  const { schema, isTaken } = textSchema(path, name);

  test('is accepted exactly if its schema accepts it', async () => {
    await fc.assert(
      fc.asyncProperty(textsAround(schema), async (text) => {
        const { status } = await app.request('GET', request + encodeURIComponent(text));
        expect([text, status !== 400]).toEqual([text, isTaken(text)]);
      }),
      { numRuns: runs(300), examples: oddTexts.map((text) => [text]) },
    );
  });
});

describe.each(['/api/events', '/api/sessions/{id}/events'])('GET %s', (path) => {
  test.each(['from', 'label'])('%s is accepted exactly if its schema accepts it', (name) => {
    const { schema, isTaken } = textSchema(path, name);
    const url = `${path.replace('{id}', 'ses_none')}?${name}=`;
    return fc.assert(
      fc.asyncProperty(textsAround(schema), async (text) => {
        // A stream would not end; a HEAD is validated like the GET.
        const { status } = await app.request('HEAD', url + encodeURIComponent(text));
        expect([text, status !== 400]).toEqual([text, isTaken(text)]);
      }),
      { numRuns: runs(500), examples: oddTexts.map((text) => [text]) },
    );
  });
});

describe('a duration', () => {
  const schema = components.schemas['Duration'] ?? {};
  const validator = Compile(schema as object);

  test('that its schema accepts is accepted', () => {
    const part = fc.stringMatching(/^[0-9]{0,5}$/);
    const near = fc.tuple(part, fc.constantFrom('h', 'H', ''), part, fc.constantFrom('m', 's', ''));
    const texts = fc.oneof(
      near.map((parts) => parts.join('')),
      textsAround(schema),
    );
    fc.assert(
      fc.property(texts, (text) => {
        if (validator.Check(text)) expect([text, parseDuration(text)]).not.toEqual([text, null]);
      }),
      { numRuns: runs(20_000), examples: [['00m'], ['0h'], ['0m'], ['24h'], ['25h'], ['1441m']] },
    );
  });

  test('is accepted as hours and minutes, and as minutes alone, up to 24 hours', () => {
    for (let minutes = 1; minutes <= 1_440; minutes += 1) {
      expect(validator.Check(formatDuration(minutes * 60_000))).toBe(true);
      expect(validator.Check(`${minutes}m`)).toBe(true);
    }
    for (const none of ['00m', '0m', '0h', '25h', '24h1m', '1441m', '', 'h', 'm'])
      expect([none, validator.Check(none)]).toEqual([none, false]);
  });
});

/** The schema of a parameter that is a string, or of one of its repetitions. */
function textSchema(path: string, name: string) {
  const parameter = paths[path]?.['get']?.parameters.find((one) => one.name === name);
  if (parameter === undefined) throw new Error(`${path} has no parameter ${name}`);
  // Beside the format `date-time`, an offset without its colon is accepted.
  const { format: _, ...schema } = parameter.schema.items ?? parameter.schema;
  const validator = Compile(schema);
  return { schema, isTaken: (text: string) => validator.Check(text) };
}

/**
 * Strings that fit the schema's pattern, strings that differ from them in one character, and any
 * strings.
 */
function textsAround({ pattern = '.*' }: DocumentSchema): fc.Arbitrary<string> {
  const fitting = fc.stringMatching(new RegExp(pattern as string));
  const character = fc.oneof(
    fc.constantFrom(...'0123456789-+:.TZ=hm '.split('')),
    fc.string({ maxLength: 1 }),
  );
  const near = fc
    .tuple(fitting, fc.nat(40), fc.nat(1), character)
    .map(([text, at, left, more]) => text.slice(0, at) + more + text.slice(at + left));
  return fc.oneof(fitting, near, fc.string());
}

/** Strings that the pattern once accepted and the service refused, and other likely ones. */
const oddTexts = [
  ...['', '=', 'a=', '=a', 'team=web', 'a', 'a=b=c', 'a=\n', '0', '00', '1234', '1e3', '-1'],
  ...['2026-01-01', '2026-02-30', '2024-02-29', '2025-02-29', '1900-02-29', '2000-02-29'],
  ...[
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00z',
    '2026-01-01t00:00:00Z',
    '2026-01-01T00:00:00',
  ],
  ...['2026-01-01T00:00:00+23:56', '2026-01-01T00:00:00-11:30', '2026-01-01T00:00:00+0100'],
  ...['2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00+01', '2026-01-01T24:00:00Z'],
  ...['2026-01-01T00:00:60Z', '2026-01-01T00:00:00.Z', '2026-01-01T00:00:00.1234567890Z'],
  ...[
    '2026-01-01T00:00Z',
    '2026-01-01T00:00+01:00',
    '0000-01-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
  ],
  ...['2026-01-01T00:00:00Z\n', ' 2026-01-01T00:00:00Z', '٢026-01-01T00:00:00Z'],
];
