import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { profileRetention } from '#src/features/profiles/retention.ts';
import { sweepObjects } from '#src/kernel/objects/sweep/sweep-objects.ts';
import { createS3ObjectStore } from '#src/kernel/objects/s3/s3-object-store.ts';
import { filesBelow } from '#test/support/scratch.ts';
import {
  containerOf,
  docker,
  hasDocker,
  testNetwork,
} from '#test/support/servers/docker-engine.ts';
import { buildAndStartS3 } from '#test/support/servers/real-s3.ts';
import {
  reaches,
  startRealService,
  temporaryFiles,
  type CreatedSession,
  type RealService,
} from '#test/support/service/real-session.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { eventually } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * Sessions with files, a profile that they save, and a recording, one after the other in each of
 * some lanes: once the time of what they have stored is over, nothing is left but the versions of
 * the profiles. CI has two lanes at once, each with one version more than is kept.
 */
const ROUNDS = soakOr(200, 6);
const LANES = soakOr(3, 2);
const VERSIONS = 2;
const HOUR_MS = 3_600_000;

const kinds = hasDocker() ? (['process', 'docker'] as const) : (['process'] as const);

/** A page in colour that downloads a file of its own. */
const PAGE = `<body style="background:teal"><h1>Report</h1><script>
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(['x'.repeat(200000)]));
  link.download = 'report.txt';
  link.click();
</script>`;

describe.each(kinds)(`${ROUNDS} sessions of %s browsers with all that is kept`, (kind) => {
  let s3: Awaited<ReturnType<typeof buildAndStartS3>>;
  let service: RealService;
  const ended: { reason: string; version: number; round: number; segments: number }[] = [];
  const profiles: { id: string; rounds: number }[] = [];
  /** The volumes that their containers had. */
  const volumes = new Set<string>();

  beforeAll(async () => {
    s3 = await buildAndStartS3();
    service = await startRealService({
      BROWSERS: kind,
      DOCKER_NETWORK: testNetwork(),
      ...s3.environment,
      POOL_MIN_IDLE: '0',
      POOL_MAX_IDLE: '0',
      PROFILE_VERSIONS: `${VERSIONS}`,
      FILES_RETAIN: '1s',
      RECORDINGS_RETAIN: '1s',
      OBJECT_SWEEP_EVERY: '2s',
    });
    await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)));
  }, 3_600_000);
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await s3?.[Symbol.asyncDispose]();
  });

  async function runLane(lane: number): Promise<void> {
    const { body } = await service.request('POST', '/api/profiles', { name: `lane ${lane}` });
    const rounds = ROUNDS / LANES;
    profiles.push({ id: body.id, rounds: Math.ceil(rounds - lane / LANES) });
    for (let round = 1; round <= Math.ceil(rounds - lane / LANES); round += 1)
      await live(body.id, round);
  }

  async function live(profileId: string, round: number): Promise<void> {
    const { status, body: session } = await service.request('POST', '/api/sessions', {
      profile: { id: profileId, save: true },
      record: true,
    });
    expect([status, session.status]).toEqual([201, 'active']);
    if (kind === 'docker') noteVolumes(session);
    const browser = await connect({ browserWSEndpoint: session.cdp_url });
    const [page] = await browser.pages();
    await page?.setContent(PAGE);
    await upload(session, `round ${round}`);
    await eventually(
      async () => (await filesOf(session)).toSorted().join() === 'report.txt,upload.txt',
      'the download and the upload are among its files',
    );
    await browser.disconnect();
    await eventually(async () => (await segmentsOf(session)) > 0, 'some of it is recorded');
    await service.request('DELETE', `/api/sessions/${session.id}`);
    const stopped = await reaches(service, session.id, 'stopped');
    const { reason, version, segments } = await outcomeOf(session, stopped);
    ended.push({ reason, version, round, segments });
  }

  function noteVolumes({ autoscaler_workload_id: workload }: CreatedSession): void {
    const format = '{{range .Mounts}}{{.Name}} {{end}}';
    const names = docker('inspect', '--format', format, containerOf(workload));
    for (const name of names.split(' ').filter(Boolean)) volumes.add(name);
  }
  async function upload({ id }: CreatedSession, text: string): Promise<void> {
    const { status } = await service.request('PUT', `/api/sessions/${id}/files/upload.txt`, text, {
      'content-type': 'application/octet-stream',
    });
    expect(status).toBe(201);
  }
  async function filesOf({ id }: CreatedSession): Promise<string[]> {
    const { body } = await service.request('GET', `/api/sessions/${id}/files`);
    return body.files.map(({ name }: { name: string }) => name);
  }
  async function outcomeOf({ id }: CreatedSession, stopped: { ended_reason: string | null }) {
    const { body } = await service.request('GET', `/api/sessions/${id}`);
    return {
      reason: String(stopped.ended_reason),
      version: Number(body.profile.saved_version),
      segments: await segmentsOf({ id }),
    };
  }
  async function segmentsOf({ id }: { id: string }): Promise<number> {
    const history = await service.request('GET', `/api/sessions/${id}/history?limit=100`);
    const types = history.body.events.map(({ type }: { type: string }) => type);
    return types.filter((type: string) => type === 'session.recording-stored').length;
  }

  /** The keys of the objects; what names the bucket's event store is none. */
  async function objects(): Promise<string[]> {
    const top = join(s3.folder, 'objects');
    const files = await filesBelow(top);
    const keys = files.map(({ parentPath, name }) => join(parentPath, name).slice(top.length + 1));
    return keys.filter((key) => !key.startsWith('store/'));
  }

  async function sweepAt(now: number): Promise<void> {
    await using log = await openLog(service);
    await using store = createS3ObjectStore({ ...s3.options, prefix: 'objects/' });
    const rules = [profileRetention(log.eventStore, { replacedKeptMs: 0, now: () => now })];
    const failures: unknown[] = [];
    await sweepObjects({ objects: store, rules }, new AbortController().signal, (error) =>
      failures.push(error),
    );
    expect(failures).toEqual([]);
  }

  test('each was stopped by its user, with a version, files and a recording', () => {
    expect(ended).toHaveLength(ROUNDS);
    expect(ended.filter(({ reason }) => reason !== 'user')).toEqual([]);
    expect(ended.filter(({ version, round }) => version !== round)).toEqual([]);
    expect(ended.filter(({ segments }) => segments === 0)).toEqual([]);
  });

  test('no browser, folder, container or volume is left', async () => {
    const browsers = descendantsOf(service.pid).filter(({ command }) =>
      /chromium|Xtigervnc/.test(command),
    );
    expect(browsers).toEqual([]);
    expect(await temporaryFiles(service)).toEqual([]);
    expect(await readdir(join(service.dataDir, 'profiles'))).toEqual([]);
    if (kind !== 'docker') return;
    const running = docker('ps', '--all', '--format', '{{.Names}}').split('\n');
    expect(volumes.size).toBe(2 * ROUNDS);
    const left = docker('volume', 'ls', '--quiet').split('\n');
    expect(left.filter((name) => volumes.has(name))).toEqual([]);
    const { body } = await service.request('GET', '/api/sessions?limit=100');
    const ids = body.sessions.map(({ id }: { id: string }) => id);
    expect(running.filter((name) => ids.some((id: string) => name.endsWith(id)))).toEqual([]);
  });

  test('once their time is over, only the versions of the profiles are left', async () => {
    const all = await Promise.all(
      profiles.map(async ({ id, rounds }) => {
        const { body } = await service.request('GET', `/api/profiles/${id}`);
        expect([body.latest_version, body.versions.length]).toEqual([rounds, VERSIONS]);
        return VERSIONS;
      }),
    );
    const versions = all.reduce((sum, count) => sum + count, 0);
    const rest = async () => (await objects()).filter((path) => !path.startsWith('profiles/'));
    await eventually(
      async () => (await rest()).length === 0,
      'the sweep has removed files and recordings',
    ).catch(async () => expect(await rest()).toEqual([]));
    // An archive that is no version stays for an hour.
    await sweepAt(Date.now() + 2 * HOUR_MS);
    expect(await objects()).toHaveLength(versions);
  });
});
