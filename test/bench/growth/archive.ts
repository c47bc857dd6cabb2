import { setTimeout as delay } from 'node:timers/promises';
import { openFolderFiles } from '#src/features/archive/archive-files.folder.ts';
import { withArchive } from '#src/features/archive/archived-event-store.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { openOnce } from '#src/features/archive/open-once.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { endedSessionId } from '#test/support/events/ended-sessions.ts';
import {
  archiveAllBut,
  bssArchive,
  openSite,
  organizationOf,
  residentMib,
  sizesOf,
  type Site,
} from './site.ts';
import { createSession, stopSession, untilIdle } from '../sessions.ts';
import { atLeast, atMost, row, summarize, timed, type Verdict } from '../samples.ts';

const SESSIONS = Number(process.env['BENCH_SESSIONS']?.split(',').at(-1) ?? 20_000);
const SESSIONS_PER_SECOND = 5_000;
const HISTORIES = 500;
const HISTORY_P95_MAX_MS = 100;
const MEMORY_MAX = 1.2;
/** Of so many ended sessions one is kept. */
const KEPT_PART = 5;
const EVENTS_OF_A_SESSION = 13;
/** Between creates that are measured while the archivist works. */
const PAUSE_MS = 200;
/**
 * Memory is compared once no process of a store has returned a twentieth of its own for so long. Go
 * collects at least every two minutes, and returns what is free in the course of minutes.
 */
const STEADY_MS = 150_000;
const STEADY_WITHIN_MS = 1_200_000;
const LOOK_MS = 5_000;

type Print = (line: string) => void;

/**
 * A run of the archivist over that many ended sessions, of which a fifth is kept, with creates
 * beside it; histories out of the archive; its verification; and what the stores' memory is
 * afterwards, beside that of a service that never had other sessions than those that are kept.
 */
export async function benchArchive(print: Print, sessions = SESSIONS): Promise<Verdict[]> {
  const keptSessions = Math.floor(sessions / KEPT_PART);
  await using small = await openSite(keptSessions, print);
  await using site = await openSite(sessions, print);
  await untilSteady([small, site]);
  await printMemory('before', [small, site], print);
  const { run, perSecond } = await runBesideCreates([site, small], keptSessions, print);
  const archived = sessions - keptSessions;
  // Creates beside the run are kept, too.
  if (run.sessions < 0.95 * archived) throw new Error(`${run.sessions} sessions were archived`);
  const histories = summarize(await readHistories(site, run.sessions));
  print(row('history out of the archive', histories));
  await verify(site, run.records, print);
  const seconds = await untilSteady([small, site]);
  print(`memory is steady ${seconds.toFixed(0)} s later`);
  const [kept, left] = await printMemory('after', [small, site], print);
  if (kept === undefined || left === undefined) throw new Error('a site has no memory');
  return [
    atLeast(`${sessions}: sessions archived a second`, perSecond, SESSIONS_PER_SECOND),
    atMost(`${sessions}: history p95, ms`, histories.p95, HISTORY_P95_MAX_MS),
    atMost('memory of nats-server after a run', left.nats / kept.nats, MEMORY_MAX),
    atMost('memory of Redis after a run', left.redis / kept.redis, MEMORY_MAX),
  ];
}

/**
 * `bss archive run` on the first site: its result, and sessions a second. Sessions are created
 * meanwhile, on all sites alike, so that what is kept is the same.
 */
async function runBesideCreates(sites: readonly [Site, Site], kept: number, print: Print) {
  const [site] = sites;
  const creates: number[] = [];
  const isDone = new AbortController();
  const beside = createNowAndThen(sites, creates, isDone.signal);
  beside.catch(() => undefined); // it is awaited below, once the run has ended
  const { result: run, ms } = await timed(() =>
    archiveAllBut(EVENTS_OF_A_SESSION * kept, site),
  ).finally(() => isDone.abort());
  await beside;
  if (run === null) throw new Error('nothing was archived');
  const perSecond = run.sessions / (ms / 1000);
  print(`archived ${rateOf(run.records, ms)}, ${perSecond.toFixed(0)} sessions a second`);
  print(row('create beside the run', summarize(creates)));
  return { run, perSecond };
}

async function verify(site: Site, records: number, print: Print): Promise<void> {
  const { result, ms } = await timed(() => bssArchive<{ agrees: boolean }>(site, ['verify']));
  if (!result.agrees) throw new Error('the archive does not agree');
  print(`verified ${rateOf(records, ms)}`);
}

function rateOf(events: number, ms: number): string {
  const seconds = ms / 1000;
  return `${events} events in ${seconds.toFixed(1)} s: ${(events / seconds).toFixed(0)} a second`;
}

/** @param ms of the creates on the first site */
async function createNowAndThen(
  sites: readonly Site[],
  ms: number[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const [at, { services }] of sites.entries()) {
      await untilIdle(services.api, 1);
      const created = await timed(() => createSession(services.api));
      if (at === 0) ms.push(created.ms);
      await stopSession(services.api, created.result.id);
    }
    await delay(PAUSE_MS);
  }
}

/** Returns the seconds until the last change. */
async function untilSteady(sites: readonly Site[]): Promise<number> {
  const begun = performance.now();
  let steadySince = begun;
  const pids = sites.flatMap(({ pids }) => [pids.nats, pids.redis]);
  const least = await Promise.all(pids.map(residentMib));
  while (performance.now() - steadySince < STEADY_MS) {
    if (performance.now() - begun > STEADY_WITHIN_MS) throw new Error('memory is not steady');
    await delay(LOOK_MS);
    for (const [at, mib] of (await Promise.all(pids.map(residentMib))).entries()) {
      if (mib > 0.95 * (least[at] as number)) continue;
      least[at] = mib;
      steadySince = performance.now();
    }
  }
  return (steadySince - begun) / 1000;
}

/** The sessions are spread over the archive, so that few of its frames are read twice. */
async function readHistories(site: Site, sessions: number): Promise<number[]> {
  const log = createJetStreamEventStore(site.connection);
  const eventStore = withArchive(
    log,
    openOnce(async () => openFolderFiles(site.archive), { readHead: createHeadReader(log) }),
  );
  const ms: number[] = [];
  const count = Math.min(HISTORIES, sessions);
  for (let at = 0; at < count; at += 1) {
    const number = Math.floor(((at * 0.618_033_988) % 1) * sessions);
    const session = {
      kind: 'session',
      organizationId: organizationOf(number),
      id: endedSessionId(number),
    } as const;
    const read = await timed(() => Array.fromAsync(eventStore.history(session)));
    if (read.result.at(-1)?.type !== 'session.stopped')
      throw new Error(`${session.id}: ${read.result.length} events`);
    ms.push(read.ms);
  }
  return ms;
}

type Memory = { nats: number; redis: number };

async function printMemory(when: string, sites: readonly Site[], print: Print): Promise<Memory[]> {
  const found: Memory[] = [];
  for (const site of sites) {
    const { pids, sessions } = site;
    const sizes = await sizesOf(site);
    const memory = { nats: await residentMib(pids.nats), redis: await residentMib(pids.redis) };
    found.push(memory);
    const stores = Object.entries(sizes).map(([name, size]) => `${name} ${size.toFixed(0)}`);
    print(
      `${when}, ${sessions} sessions: nats-server ${memory.nats.toFixed(0)} MiB, ` +
        `Redis ${memory.redis.toFixed(0)} MiB; ${stores.join('; ')}`,
    );
  }
  return found;
}
