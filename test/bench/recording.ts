import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import type { WebSocket } from 'ws';
import { sleep } from '#src/kernel/async/sleep.ts';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { createReplay } from '#src/features/recordings/replay.ts';
import { readSegment } from '#src/features/recordings/segment-format.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import { DEV_KEY, eventually, startService } from '#test/support/service/service.ts';
import { command, firstReply } from './cdp-client.ts';
import { atMost, timed, type Verdict } from './samples.ts';

/**
 * What a recording costs, beside the same page without one: processor time of the service, its
 * stores, the X server and the browser, and bytes in the object store. The browsers are processes.
 */

/** The recorder stores the whole screen once a minute: a shorter time would be cheaper. */
const MEASURE_MS = 65_000;
/** A page that has just been opened still loads, and fonts are read. */
const SETTLE_MS = 3_000;
/** The unit of /proc/<pid>/stat. */
const TICKS_PER_SECOND = 100;
const MINUTE_MS = 60_000;

const TEXT = Array.from(
  { length: 400 },
  (_, line) => `<p>${line}. The quick brown fox jumps over the lazy dog, again and again.</p>`,
).join('');

/** Nothing moves; 120 pixels a second of text; a moving picture of 640 × 360, 25 times a second. */
const PAGES = {
  idle: '<h1>Idle</h1>',
  scrolling: `${TEXT}<script>
    let y = 0;
    setInterval(() => scrollTo(0, (y = (y + 4) % 8000)), 33);
  </script>`,
  video: `<canvas width=640 height=360></canvas><script>
    const context = document.querySelector('canvas').getContext('2d');
    const picture = context.createImageData(640, 360);
    const wave = Array.from({ length: 1024 }, (_, at) => 128 + 127 * Math.sin(at / 163));
    let time = 0;
    setInterval(() => {
      time += 7;
      for (let y = 0, at = 0; y < 360; y += 1)
        for (let x = 0; x < 640; x += 1, at += 4) {
          picture.data[at] = wave[(2 * x + time) & 1023];
          picture.data[at + 1] = wave[(3 * y + 2 * time) & 1023];
          picture.data[at + 2] = wave[(x + y + 3 * time) & 1023];
          picture.data[at + 3] = 255;
        }
      context.putImageData(picture, 0, 0);
    }, 40);
  </script>`,
};
type Page = keyof typeof PAGES;

/** Processor time of a page with a recording ÷ without; what does not change costs nothing. */
const GOALS: Record<Page, number> = { idle: 1.1, scrolling: 2.5, video: 3 };
/** A moment of a recording is to be shown within this. */
const SHOW_GOAL_SECONDS = 1;

type Measured = {
  /** Seconds of processor time in a minute. */
  cpuSeconds: number;
  recorded: Recorded | null;
};
type Recorded = {
  /** Bytes in the object store for a minute. */
  bytes: number;
  /** From the question for the last moment until it is decoded. */
  showSeconds: number;
};

export async function benchRecording(
  print: (line?: string) => void,
  env: Record<string, string>,
): Promise<Verdict[]> {
  await using service = await startService({ ...env, BROWSERS: 'process', POOL_MIN_IDLE: '0' });
  const client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  const verdicts: Verdict[] = [];
  print(`a minute of a page${' '.repeat(12)}cpu s  recorded  kB stored  last picture s`);
  // The first session fills the caches.
  await measure(client, service.pid, { page: 'idle', record: true, ms: SETTLE_MS });
  for (const page of Object.keys(PAGES) as Page[]) {
    const ms = MEASURE_MS;
    const without = await measure(client, service.pid, { page, record: false, ms });
    const { cpuSeconds, recorded } = await measure(client, service.pid, { page, record: true, ms });
    if (recorded === null) throw new Error(`${page}: nothing was recorded`);
    const { bytes, showSeconds } = recorded;
    const cells = [
      without.cpuSeconds.toFixed(2).padStart(7),
      cpuSeconds.toFixed(2).padStart(10),
      (bytes / 1000).toFixed(0).padStart(11),
      showSeconds.toFixed(2).padStart(16),
    ];
    print(`${page.padEnd(28)}${cells.join('')}`);
    verdicts.push(
      atMost(
        `processor time, ${page}, ÷ not recorded`,
        cpuSeconds / without.cpuSeconds,
        GOALS[page],
      ),
      atMost(`last picture of the ${page} recording, s`, showSeconds, SHOW_GOAL_SECONDS),
    );
  }
  return verdicts;
}

async function measure(
  client: Client,
  servicePid: number,
  { page, record, ms }: { page: Page; record: boolean; ms: number },
): Promise<Measured> {
  const session = await client.sessions.create({ record, duration: '10m' });
  const socket = await firstReply(session.cdp_url ?? '');
  await open(socket, PAGES[page]);
  await sleep(SETTLE_MS);
  const before = processorSeconds(servicePid);
  await sleep(ms);
  const used = processorSeconds(servicePid) - before;
  socket.terminate();
  await session.stop();
  const hasEnded = async () => (await client.sessions.get(session.id)).status === 'stopped';
  await eventually(hasEnded, `${session.id} has ended`);
  const minutes = ms / MINUTE_MS;
  const recorded = record ? await readRecording(client, session.id) : null;
  return { cpuSeconds: used / minutes, recorded };
}

/** Shows a page in the browser's first tab. */
async function open(socket: WebSocket, html: string): Promise<void> {
  const { targetInfos } = await command(socket, 'Target.getTargets', {});
  const tab = (targetInfos as { targetId: string; type: string }[]).find(
    ({ type }) => type === 'page',
  );
  const attach = { targetId: tab?.targetId, flatten: true };
  const { sessionId } = await command(socket, 'Target.attachToTarget', attach);
  const url = `data:text/html,${encodeURIComponent(html)}`;
  await command(socket, 'Page.navigate', { url }, sessionId as string);
}

/** Its size, and how long its last picture takes: segments read over the API, and decoded. */
async function readRecording(client: Client, id: string): Promise<Recorded> {
  const {
    segments,
    bytes,
    started_at: from,
    ended_at: until,
  } = await client.sessions.recording(id);
  const named = segments.map(({ name, started_at: startedAt, ended_at: endedAt, full }) => ({
    ...{ name, full },
    ...{ startedAt: Date.parse(startedAt), endedAt: Date.parse(endedAt) },
  }));
  const replay = createReplay(
    () => named,
    async (name) => {
      const content = await client.sessions.recordingSegment(id, name);
      return readSegment(inflateSync(await content.read()));
    },
  );
  const { ms, result } = await timed(() => replay.show(Date.parse(until ?? '')));
  if (!result || replay.screen.width === 0) throw new Error('the recording shows nothing');
  const minutes = (Date.parse(until ?? '') - Date.parse(from ?? '')) / MINUTE_MS;
  return { bytes: bytes / minutes, showSeconds: ms / 1000 };
}

/** Processor time of a process and of all below it that run now. */
function processorSeconds(pid: number): number {
  const pids = [pid, ...descendantsOf(pid).map((one) => one.pid)];
  return pids.reduce((sum, one) => sum + ticksOf(one), 0) / TICKS_PER_SECOND;
}

/** 0 if it has ended. */
function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Fields are counted after the name, which may itself hold spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}
