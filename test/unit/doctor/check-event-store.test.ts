import { describe, expect, it } from 'vitest';
import type { ConfigFacts, LogFacts, StreamFacts } from '#src/doctor/facts.ts';
import { judgeLog } from '#src/doctor/check-event-store.ts';

/** What the doctor makes of what NATS and its streams say of themselves. */

const config: ConfigFacts = {
  isEmbedded: false,
  isProduction: true,
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
};
const server = (name: string) => ({ name, version: '2.15.1', syncsAlways: true });
const whole: LogFacts = {
  version: '2.15.1',
  isClustered: true,
  servers: ['nats-1', 'nats-2', 'nats-3'].map(server),
  skewMs: 3,
  streams: [stream],
  storage: { usedBytes: 1024, maxBytes: null },
  mayPublishAll: false,
};

/** The findings that are not fine, as `check level what`. */
function amiss(log: Partial<LogFacts>, more: Partial<ConfigFacts> = {}): string[] {
  return judgeLog({ ...whole, ...log }, { ...config, ...more })
    .filter(({ level }) => level !== 'ok')
    .map(({ check, level, what }) => `${check} ${level}: ${what}`);
}

describe('a log', () => {
  it('with three copies on three servers that sync is fine', () => {
    expect(amiss({})).toEqual([]);
  });

  it('that acknowledges before it is on disk is bad', () => {
    const servers = [server('nats-1'), { ...server('nats-2'), syncsAlways: false }];
    expect(amiss({ servers: [...servers, server('nats-3')] })).toEqual([
      'log.sync bad: what nats-2 acknowledges is on its disk only later',
    ]);
  });

  it('of servers of several versions is to be mended', () => {
    const servers = [{ ...server('nats-1'), version: '2.14.0' }, ...whole.servers.slice(1)];
    expect(amiss({ servers })).toEqual([
      'log.servers warn: nats-servers of 2 versions: nats-1 2.14.0, nats-2 2.15.1, nats-3 2.15.1',
    ]);
  });

  it('one of whose servers is away is no smaller for it', () => {
    expect(amiss({ servers: whole.servers.slice(1) })).toEqual([]);
  });

  it('with one copy in a cluster is bad', () => {
    expect(amiss({ streams: [{ ...stream, replicas: 1 }] })).toEqual([
      'log.replicas bad: copies in a cluster of 3: EVENTS 1',
    ]);
  });

  it('on two servers is stopped by the loss of either', () => {
    const two = { servers: whole.servers.slice(1), streams: [{ ...stream, replicas: 2 }] };
    expect(amiss(two)).toEqual([
      'log.servers warn: two servers of NATS answer: the loss of either stops it',
    ]);
  });

  it('whose servers may not be asked leaves that to be seen, but where the service runs it', () => {
    const unasked = { servers: [] };
    expect(amiss(unasked)).toEqual([
      'log.sync warn: this user may not ask NATS how its servers are set',
    ]);
    expect(amiss(unasked, { isEmbedded: true })).toEqual([]);
    expect(
      amiss({ ...unasked, isClustered: false, streams: [{ ...stream, replicas: 1 }] }),
    ).toEqual(['log.sync warn: this user may not ask NATS how its servers are set']);
  });
});
