import { describe, expect, it } from 'vitest';
import type { ConfigFacts, EventStoreFacts, StreamFacts } from '#src/apps/doctor/facts.ts';
import { checkEventStore } from '#src/apps/doctor/check-event-store.ts';

/** The doctor's findings about NATS servers, streams and replicas. */

const config: ConfigFacts = {
  isEmbedded: false,
  isProduction: true,
  unisolated: null,
  browsers: 'docker',
  hasProvisioner: true,
  secrets: new Map(),
  links: [],
};
const stream: StreamFacts = {
  name: 'EVENTS',
  isThere: true,
  replicas: 3,
  leader: 'nats-1',
  differs: [],
  unfit: [],
  behind: [],
  bytes: 0,
  maxBytes: null,
};
const server = (name: string) => ({ name, version: '2.15.1', syncsAlways: true });
const whole: EventStoreFacts = {
  version: '2.15.1',
  isClustered: true,
  servers: ['nats-1', 'nats-2', 'nats-3'].map(server),
  skewMs: 3,
  streams: [stream],
  storage: { usedBytes: 1024, maxBytes: null },
  mayPublishAll: false,
};

/** The findings that are not ok, as `check level: what`. */
function problems(log: Partial<EventStoreFacts>, more: Partial<ConfigFacts> = {}): string[] {
  return checkEventStore({ ...whole, ...log }, { ...config, ...more })
    .filter(({ level }) => level !== 'ok')
    .map(({ check, level, what }) => `${check} ${level}: ${what}`);
}

describe('the event store', () => {
  it('with three replicas on three servers that sync has no problem', () => {
    expect(problems({})).toEqual([]);
  });

  it('that acknowledges events before they are on disk is bad', () => {
    const servers = [server('nats-1'), { ...server('nats-2'), syncsAlways: false }];
    expect(problems({ servers: [...servers, server('nats-3')] })).toEqual([
      'log.sync bad: acknowledged events are not yet on the disk of nats-2',
    ]);
  });

  it('with servers of several versions gets a warning', () => {
    const servers = [{ ...server('nats-1'), version: '2.14.0' }, ...whole.servers.slice(1)];
    expect(problems({ servers })).toEqual([
      'log.servers warn: nats-servers of 2 versions: nats-1 2.14.0, nats-2 2.15.1, nats-3 2.15.1',
    ]);
  });

  it('counts a server that is down as part of the cluster', () => {
    expect(problems({ servers: whole.servers.slice(1) })).toEqual([]);
  });

  it('with one replica in a cluster is bad', () => {
    expect(problems({ streams: [{ ...stream, replicas: 1 }] })).toEqual([
      'log.replicas bad: too few replicas in a cluster of 3: EVENTS 1',
    ]);
  });

  it('whose objects are near their greatest size gets a warning', () => {
    const sized = { ...stream, name: 'OBJECTS', maxBytes: 64 * 1024 ** 2 };
    expect(problems({ streams: [{ ...sized, bytes: 50 * 1024 ** 2 }] })).toEqual([]);
    expect(problems({ streams: [{ ...sized, bytes: 60 * 1024 ** 2 }] })).toEqual([
      'log.storage warn: OBJECTS: 60 MiB of 64 MiB',
    ]);
  });

  it('with two servers gets a warning: the loss of either stops it', () => {
    const two = { servers: whole.servers.slice(1), streams: [{ ...stream, replicas: 2 }] };
    expect(problems(two)).toEqual([
      'log.servers warn: two NATS servers: the loss of either stops the event store',
    ]);
  });

  it('whose server settings may not be read gets a warning, unless it is embedded', () => {
    const unasked = { servers: [] };
    expect(problems(unasked)).toEqual([
      'log.sync warn: this NATS user may not read the settings of the servers',
    ]);
    expect(problems(unasked, { isEmbedded: true })).toEqual([]);
    expect(
      problems({ ...unasked, isClustered: false, streams: [{ ...stream, replicas: 1 }] }),
    ).toEqual(['log.sync warn: this NATS user may not read the settings of the servers']);
  });
});
