import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import { dockerHost, hasDocker } from '#test/support/servers/docker-engine.ts';
import { openSecondEngine, type SecondEngine } from '#test/support/servers/second-engine.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { eventually } from '#test/support/service/service.ts';
import {
  startSplitService,
  watchFor,
  type SessionKind,
  type SplitService,
} from '#test/support/service/split-service.ts';
import { isSoak, soakOr } from '#test/support/soak.ts';

/**
 * A Docker engine, used by this test alone, is killed with -9 as soon as the event store has an
 * event of a session's life, and started again. Within a minute after its return the session has
 * one of the outcomes in its row, and nothing leaks.
 *
 * CI kills either engine while a session is active and while one ends: of the engine that ends its
 * containers, one that saves its profile. Only the soak finds a fault at one of the other steps.
 */

/** The session is active, or the reason of its end. */
type Outcome = 'active' | 'user' | 'browser_crashed';
type Row = [killedAt: string, session: SessionKind, outcomes: Outcome[]];

/** By default an engine ends its containers when it comes back. */
const CONTAINERS_END: Row[] = soakOr<Row[]>(
  [
    ['workload.launching', 'cold', ['active']],
    ['workload.idle', 'cold', ['active', 'browser_crashed']],
    ['session.activated', 'warm', ['browser_crashed']],
    ['session.stop-requested', 'stopping', ['user']],
  ],
  [
    ['workload.launching', 'cold', ['active']],
    ['session.activated', 'warm', ['browser_crashed']],
  ],
);
const CONTAINERS_STAY: Row[] = [
  ['session.activated', 'warm', ['active']],
  ['session.stop-requested', 'stopping', ['user']],
];

/** Options of the engine's daemon, its rows, and whether a session saves its profile. */
type Engine = { options: string[]; rows: Row[]; saves: boolean };
const engines: [which: string, Engine][] = [
  ['that ends its containers', { options: [], rows: CONTAINERS_END, saves: true }],
  ['with --live-restore', { options: ['--live-restore'], rows: CONTAINERS_STAY, saves: isSoak }],
];

describe.runIf(hasDocker()).each(engines)('a Docker engine %s, killed with -9 at', (_, kind) => {
  const { options, rows, saves } = kind;
  let engine: SecondEngine;
  let service: SplitService;
  beforeAll(async () => {
    const first = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
    const images = [
      await ensureBrowserImage(first, null, console.error),
      await ensureRulesImage(first, console.error),
    ];
    engine = await openSecondEngine(images, options);
    service = await startSplitService(
      { POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '3', QUEUE_AFTER: '200ms' },
      {
        BROWSERS: 'docker',
        DOCKER_HOST: engine.host,
        DOCKER_PUBLISH: engine.address,
        DOCKER_ON_SHUTDOWN: 'stop',
      },
    );
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  test.each(rows)(
    '%s of a %s session leaves it %j and everything consistent',
    async (killedAt, session, outcomes) => {
      await service.untilReady();
      const id = await service.bringTo(killedAt, session);
      await engine.kill();
      await engine.restart();

      await service.untilConsistent({
        containers: () => [containers('-aq'), containers('-q')],
        idle: 1,
      });
      const { status, ended_reason: reason, cdp_url: url } = await service.read(id);
      expect(outcomes).toContain(status === 'active' ? status : reason);
      await auditLog(service.main);
      if (status !== 'active') return;
      const { hostname, port, pathname } = new URL(url);
      using cdp = await openCdp({ host: hostname, port: Number(port), path: pathname });
      expect(await evaluate(cdp, await attachPage(cdp), '6 * 7')).toBe(42);
      await service.main.request('DELETE', `/api/sessions/${id}`);
    },
  );

  if (saves) {
    test('the end of a session that saves its profile leaves the last version or the next, and the profile free', async () => {
      const { main, untilReady, untilConsistent, read, serverId } = service;
      await untilReady();
      const { body: made } = await main.request('POST', '/api/profiles', { name: 'shop' });
      const begin = async () => {
        const profile = { id: made.id, save: true };
        const { body } = await main.request('POST', '/api/sessions', { duration: '1h', profile });
        await eventually(async () => (await read(body.id)).status === 'active', 'it is active');
        return String(body.id);
      };
      const saving = await begin();
      const { come } = await watchFor(main, 'workload.terminating', serverId);
      await main.request('DELETE', `/api/sessions/${saving}`);
      await come;
      await engine.kill();
      await engine.restart();

      await untilConsistent({ containers: () => [containers('-aq'), containers('-q')], idle: 1 });
      expect((await read(saving)).status).toBe('stopped');
      const { body: left } = await main.request('GET', `/api/profiles/${made.id}`);
      expect(left.saving_session_id).toBeNull();
      expect([null, 1]).toContain(left.latest_version);
      const next = await begin();
      await main.request('DELETE', `/api/sessions/${next}`);
      await eventually(async () => (await read(next)).status === 'stopped', 'it has stopped');
      const { body: saved } = await main.request('GET', `/api/profiles/${made.id}`);
      expect(saved.latest_version).toBe((left.latest_version ?? 0) + 1);
    });
  }

  /** Number of containers of the server's browsers. */
  function containers(which: '-aq' | '-q'): number {
    const label = `label=browser-session-service.server=${service.serverId}`;
    return engine.docker('ps', which, '--filter', label).split('\n').filter(Boolean).length;
  }
});
