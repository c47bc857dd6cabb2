import { describe, expect, it, test } from 'vitest';
import { decode } from '#events/codec.ts';
import { aggregates, type RecordedEvent } from '#events/events.ts';
import {
  isPublic,
  toLiveMessage,
  toOperatorEvent,
  toPublicEvent,
  toPublicMessage,
} from '#events/public-event.ts';
import { dataVersion } from '#events/upcast.ts';
import { readAsyncApi } from '#src/roles/api/docs/asyncapi.ts';
import { readMessage } from '#test/support/events/golden-files.ts';

const { schemas } = (await readAsyncApi()).components;

/** Every event that an organization may get, as its golden file has it. */
const kinds = ['session', 'ledger', 'organization'] as const;
const types = kinds.flatMap((kind) => Object.keys(aggregates[kind].events).filter(isPublic));

const INSIDE =
  /serverIp|"(cdp|vnc|webdriver|owner|hash)":|fingerprint|repeatable|keyedExtensions|10\.0\.0\.7/;
/** A SHA-256 in hex, as golden files have them; those of stored bytes are no secret. */
const HASH = /(?<!"(sha256|chain)":")[0-9a-f]{64}/;

function goldenOf(type: string): RecordedEvent {
  const { subject, headers, body } = readMessage(type, dataVersion(type));
  return decode(subject, (name) => headers[name] ?? '', JSON.stringify(body), 1234);
}

describe.each(types)('%s as organizations get it', (type) => {
  const event = goldenOf(type);

  it('has no address of a browser and no hash', () => {
    const forms = [
      JSON.stringify(toPublicEvent(event)),
      new TextDecoder().decode(toPublicMessage(event, 7).body),
    ];
    for (const form of forms) {
      expect(form).not.toMatch(INSIDE);
      expect(form).not.toMatch(HASH);
    }
  });

  it('has, as a live message, its organization’s own number and no other', () => {
    const stored = toPublicMessage(event, 7);
    const { subject, headers, body } = toLiveMessage(stored);
    const golden = readMessage(type, dataVersion(type));
    expect(subject).toBe(golden.subject.replace(/^evt\./, 'live.evt.'));
    expect(headers).toEqual({ ...golden.headers, 'ce-orgsequence': '7' });
    expect(body).toBe(stored.body);
  });

  it('otherwise equals the stored event, in both forms', () => {
    const { data, state, ...envelope } = toPublicEvent(event);
    expect(envelope).toMatchObject({ id: event.id, type, sequence: 1234, time: event.time });
    expect(event.data).toMatchObject(data as object);
    // A golden file may be older than the current fold.
    if (event.state === null) expect(state).toBeNull();
    else expect(event.state).toMatchObject(state as object);
    const { subject, headers, body } = toPublicMessage(event, 7);
    const golden = readMessage(type, dataVersion(type));
    expect(subject).toBe(golden.subject.replace(/^evt\./, 'pub.'));
    expect(headers).toEqual({
      ...golden.headers,
      'ce-sequence': '1234',
      'ce-orgsequence': '7',
    });
    expect(JSON.parse(new TextDecoder().decode(body))).toMatchObject({ data, state });
  });
});

test('the internal parts are in the stored events, so that the test above can fail', () => {
  const all = JSON.stringify(types.map((type) => goldenOf(type)));
  for (const sign of ['serverIp', '"cdp"', '"vnc"', '"hash"', 'fingerprint', '10.0.0.7'])
    expect(all).toContain(sign);
});

test('the document for organizations describes no internal part', () => {
  for (const name of [...types, 'SessionState', 'LedgerState', 'OrganizationState']) {
    const text = JSON.stringify(schemas[name]);
    expect(text, name).not.toMatch(/serverIp|"(cdp|vnc|hash|fingerprint|repeatable)":/);
  }
  expect(JSON.stringify(schemas['SessionState'])).toContain('workloadId');
});

/** Names of fields that may hold an address, a way to something, or a secret. */
const ADDRESS =
  /^(host|ip|port|path|url|address|endpoint|token)$|(Host|Ip|Port|Path|Url|Address|Endpoint)$/;
const SECRET = /(Secret|Password|Token|Key|Hash|mcpSessionId)$/;
/** Fields of those names that are the organization's own: where its pages and webhooks are. */
const OWN = /(\.|^)(webhooks\.|webhook-[a-z]+\.|[bB]lackBox\.(\w+\.)?)address$|\.hosts\.host$/;

test('no field of what organizations get is an address of the inside or a secret', () => {
  const fields = Object.entries(schemas)
    .filter(([name]) => !/^(server|workload|archive)\.|^(Server|Workload|Archive)/.test(name))
    .flatMap(([name, schema]) => fieldsOf(schema, name));
  const named = fields.filter((field) => {
    const last = field.slice(field.lastIndexOf('.') + 1);
    return ADDRESS.test(last) || SECRET.test(last);
  });
  expect(named.filter((field) => !OWN.test(field))).toEqual([]);
  expect(named).toContain('session.egress-recorded.hosts.host');
});

test('organizations get of a browser these fields and no other', () => {
  for (const name of ['SessionState', 'session.activated']) {
    const fields = fieldsOf(schemas[name] ?? {}, '').filter((field) =>
      /^\.workload\.\w+$/.test(field),
    );
    expect(new Set(fields), name).toEqual(
      new Set(['workloadId', 'serverId', 'link', 'egress'].map((one) => `.workload.${one}`)),
    );
  }
});

test('a browser with a WebDriver has no address of it, and a session not what it ends with', () => {
  const event = goldenOf('session.activated');
  const { workload } = event.data as { workload: object };
  const driven = { ...workload, webdriver: { host: '10.0.0.7', port: 9515, cdpPort: 9222 } };
  const owner = { mcpSessionId: 'mcp_J5mYt3QKX2m0bq1uHcR8Vw' };
  const data = { ...event.data, owner, workload: driven };
  const stored = { ...event, data, state: { ...event.state, ...data } } as RecordedEvent;
  const text = JSON.stringify(toPublicEvent(stored));
  expect(text).toContain('workloadId');
  expect(text).not.toMatch(/webdriver|cdpPort|10\.0\.0\.7|owner|mcp_/);
});

/** The paths of all fields of a schema, those of lists without their index. */
function fieldsOf(schema: object, path: string): string[] {
  const { anyOf = [], items = {}, properties = {} } = schema as Record<string, object>;
  return [
    ...(anyOf as object[]).flatMap((one) => fieldsOf(one, path)),
    ...(Object.keys(items).length > 0 ? fieldsOf(items, path) : []),
    ...Object.entries(properties).flatMap(([name, one]) => [
      `${path}.${name}`,
      ...fieldsOf(one as object, `${path}.${name}`),
    ]),
  ];
}

test('a label that the caller set is kept, whatever its name', () => {
  const event = goldenOf('session.activated');
  const labels = { cdp: 'a', hash: 'b', fingerprint: 'c' };
  const labelled = { ...event, state: { ...event.state, labels } } as RecordedEvent;
  expect(toPublicEvent(labelled).state).toMatchObject({ labels });
});

test('organizations get every event of theirs but those that carry a state forward', () => {
  const all = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
  const internal = all.filter(
    (type) => !isPublic(type) && !/^(server|workload|archive)\./.test(type),
  );
  expect(internal).toEqual([
    'session.carried-forward',
    'ledger.carried-forward',
    'organization.carried-forward',
    'profile.carried-forward',
  ]);
  for (const type of internal) expect(() => toPublicMessage(goldenOf(type), 1)).toThrow(RangeError);
});

test('an event of the fleet has no form for organizations', () => {
  expect(() => toPublicMessage(goldenOf('server.joined'), 1)).toThrow(RangeError);
});

test('operators get a webhook with its address and not with its URL, and all else', () => {
  const added = goldenOf('organization.webhook-added');
  const { data, state } = toOperatorEvent(added);
  const { endpoint, ...shown } = added.data as { endpoint: string };
  expect(data).toEqual(shown);
  expect(data).toHaveProperty('address');
  const [webhook] = (added.state as { webhooks: { endpoint: string }[] }).webhooks;
  const { endpoint: _, ...others } = webhook ?? { endpoint };
  expect(state).toEqual({ ...added.state, webhooks: [others] });
  expect(JSON.stringify(toOperatorEvent(added))).not.toContain(endpoint);
});
