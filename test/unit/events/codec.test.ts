import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { decode, encode, MalformedEvent, UnknownEvent, type PendingEvent } from '#events/codec.ts';
import { dataVersion, upcast } from '#events/upcast.ts';
import { exampleEvents } from '#test/support/events/example-lives.ts';
import { readMessage } from '#test/support/events/golden-files.ts';

const example = exampleEvents.get('session.requested') as PendingEvent;

/** Any metadata that a caller, a clock or a tracer may add to an event. */
const anyMetadata = fc.record({
  actor: fc.record(
    {
      kind: fc.constantFrom('user', 'operator', 'service'),
      id: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 }),
      via: fc.constantFrom('mcp', 'webdriver', 'one-call', 'of-a-newer-version'),
      client: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
    },
    { requiredKeys: ['kind', 'id'] },
  ),
  commandId: fc.uuid(),
  correlationId: fc.uuid(),
  causationId: fc.option(fc.uuid()),
});

describe('an event', () => {
  it('decodes to what was encoded', () => {
    fc.assert(
      fc.property(fc.constantFrom(...exampleEvents.values()), anyMetadata, (event, metadata) => {
        const written = { ...event, metadata };
        expect(roundTrip(written)).toEqual({ ...written, sequence: 7 });
      }),
    );
  });

  it('keeps its trace context', () => {
    const traceparent = `00-${'0a'.repeat(16)}-${'0b'.repeat(8)}-01`;
    const written = { ...example, metadata: { ...example.metadata, traceparent } };
    expect(roundTrip(written).metadata).toEqual(written.metadata);
  });

  it('keeps every character of free text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (description) => {
        const data = { ...(example.data as object), description };
        expect(roundTrip({ ...example, data }).data).toEqual(data);
      }),
    );
  });

  it('that does not fit its schema is not encoded', () => {
    const broken: Partial<PendingEvent>[] = [
      { data: {} },
      { data: { ...(example.data as object), creditsReserved: -1 } },
      { state: null },
      { state: { ...(example.state as object), status: 'gone' } },
      { type: 'session.exploded' },
    ];
    for (const part of broken)
      expect(() => encode({ ...example, ...part }), JSON.stringify(part)).toThrow(MalformedEvent);
  });

  it('is not encoded under the subject of another kind', () => {
    const ledger = exampleEvents.get('ledger.slot-reserved') as PendingEvent;
    const foreign = { ...ledger, aggregate: example.aggregate, state: example.state };
    expect(() => encode(foreign)).toThrow(RangeError);
  });
});

describe('a state of another version', () => {
  it('is not used, whatever it contains', () => {
    const golden = readMessage('session.requested', 1);
    for (const stateVersion of [0, 99, null, '1']) {
      const body = { ...golden.body, stateVersion, state: { foo: 1 } };
      expect(read({ ...golden, body: JSON.stringify(body) }).state).toBeNull();
    }
  });
});

describe('a message is malformed', () => {
  const golden = readMessage('session.requested', 1);
  const json = JSON.stringify(golden.body);
  const requested = 'urn:bss:event:session.requested';
  const withHeaders = (headers: Record<string, string>) => ({
    headers: { ...golden.headers, ...headers },
  });
  const withData = (data: unknown) => ({ body: JSON.stringify({ ...golden.body, data }) });
  const withState = (state: unknown) => ({ body: JSON.stringify({ ...golden.body, state }) });
  const data = golden.body.data as Record<string, unknown>;

  test.each<[string, Partial<Raw>]>([
    ['under a foreign subject', { subject: 'live.evt.org_acme.session.ses_1.requested' }],
    ['under a subject with a wildcard', { subject: 'evt.*.session.ses_1.requested' }],
    ["under another event's subject", { subject: 'evt.org_acme.session.ses_1.queued' }],
    [
      'of an unknown type',
      {
        subject: 'evt.org_acme.session.ses_1.exploded',
        ...withHeaders({ 'ce-dataschema': 'urn:bss:event:session.exploded:1' }),
      },
    ],
    ['of a version from the future', withHeaders({ 'ce-dataschema': `${requested}:99` })],
    ['of version 0', withHeaders({ 'ce-dataschema': `${requested}:0` })],
    ['of a version that is no number', withHeaders({ 'ce-dataschema': `${requested}:one` })],
    ['with a foreign schema', withHeaders({ 'ce-dataschema': 'https://example.org/schema' })],
    ['without a schema', withHeaders({ 'ce-dataschema': '' })],
    ['without an id', withHeaders({ 'ce-id': '' })],
    ['without a time', withHeaders({ 'ce-time': '' })],
    ['with a time that is none', withHeaders({ 'ce-time': 'yesterday' })],
    ['without a command', withHeaders({ 'ce-commandid': '' })],
    ['without an actor', withHeaders({ 'ce-actor': '' })],
    ['by an actor of an unknown kind', withHeaders({ 'ce-actor': 'robot:r2' })],
    ['by an actor without a name', withHeaders({ 'ce-actor': 'user:' })],
    ['through a door whose name is none', withHeaders({ 'ce-via': 'M C P' })],
    ['by a client whose name cannot be read', withHeaders({ 'ce-client': '%E0%A4%A' })],
    ['by a client with too long a name', withHeaders({ 'ce-client': 'x'.repeat(101) })],
    ['by an actor whose name cannot be read', withHeaders({ 'ce-actor': 'user:%E0%A4%A' })],
    ['with no body', { body: '' }],
    ['with a body that is cut off', { body: json.slice(0, -1) }],
    ['with a body of null', { body: 'null' }],
    ['with a body that is no object', { body: '42' }],
    ['without data', withData(undefined)],
    ['with data of another type', withData('text')],
    ['with a field missing', withData({ ...data, createdAt: undefined })],
    ['with a field of another type', withData({ ...data, creditsReserved: '120' })],
    ['with a time of another form', withData({ ...data, createdAt: '2026-03-01' })],
    ['with a state of no shape', withState({})],
    ['without a state', withState(undefined)],
  ])('%s', (_, part) => {
    expect(() => read({ ...golden, body: json, ...part })).toThrow(MalformedEvent);
  });

  it('only with such a change', () => {
    expect(() => read({ ...golden, body: json })).not.toThrow();
  });

  it('and whatever it contains, decoding throws only MalformedEvent', () => {
    fc.assert(
      fc.property(fc.json(), fc.string(), (body, actor) => {
        for (const raw of [
          { body },
          withHeaders({ 'ce-actor': actor }),
          withHeaders({ 'ce-dataschema': actor }),
        ])
          try {
            read({ ...golden, body: json, ...raw });
          } catch (error) {
            expect(error).toBeInstanceOf(MalformedEvent);
          }
      }),
    );
  });
});

describe('an event of a newer version', () => {
  const golden = readMessage('session.requested', 1);
  const json = JSON.stringify(golden.body);
  const withType = (subject: string, type: string, version = 1) => ({
    ...golden,
    subject,
    headers: {
      ...golden.headers,
      'ce-type': type,
      'ce-dataschema': `urn:bss:event:${type}:${version}`,
    },
    body: json,
  });
  const ofTomorrow = [
    ['of another type', withType('evt.org_1.session.ses_1.noted', 'session.noted')],
    ['of a raised version', withType(golden.subject, 'session.requested', 2)],
    ['of another kind of aggregate', withType('evt.org_1.invoice.inv_1.paid', 'invoice.paid')],
    ['of a kind of the fleet', withType('fleet.rack.rack_1.added', 'rack.added')],
  ] as const;

  test.each(ofTomorrow)('%s is unknown', (_, raw) => {
    expect(() => read(raw)).toThrow(UnknownEvent);
  });

  test.each(ofTomorrow)('%s is malformed without an id, a time or a body', (_, raw) => {
    for (const part of [
      { headers: { ...raw.headers, 'ce-id': '' } },
      { headers: { ...raw.headers, 'ce-time': 'yesterday' } },
      { body: 'null' },
    ]) {
      expect(() => read({ ...raw, ...part })).toThrow(MalformedEvent);
      expect(() => read({ ...raw, ...part })).not.toThrow(UnknownEvent);
    }
  });

  it('is distinguished from data that does not fit a version that is known', () => {
    const body = JSON.stringify({ ...golden.body, data: {} });
    expect(() => read({ ...golden, body })).toThrow(MalformedEvent);
    expect(() => read({ ...golden, body })).not.toThrow(UnknownEvent);
  });
});

describe('upcasting a retired shape', () => {
  it('leaves the current shape unchanged', () => {
    const data = { reason: 'user' };
    expect(upcast('session.stop-requested', dataVersion('session.stop-requested'), data)).toBe(
      data,
    );
  });

  test.each([0, 99, 1.5, Number.NaN])('fails for the unknown version %d', (version) => {
    expect(() => upcast('session.stop-requested', version, {})).toThrow(RangeError);
  });
});

type Raw = { subject: string; headers: Record<string, string>; body: string };

function read({ subject, headers, body }: Raw) {
  return decode(subject, (name) => headers[name] ?? '', body, 7);
}

function roundTrip(event: PendingEvent) {
  const { subject, headers, body } = encode(event);
  return read({ subject, headers, body: new TextDecoder().decode(body) });
}
