import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { startEmbedded } from '#src/start/embedded/embedded.ts';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { newAccountSeed, readIssuer } from '#src/features/nats-tenants/nkey.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { createFigures, interleave } from '../harness/interleave.ts';
import type { Probe } from '../harness/probe.ts';
import { send } from '../http-client.ts';
import { bareLife, bareTogether, type LifecycleOptions } from '../lifecycle/bench-lifecycle.ts';
import { keepIdle, stopSession, untilIdle } from '../sessions.ts';
import { row, timed, type Samples, type Verdict } from '../samples.ts';
import type { BareSettings, Example } from './bare-create-apart.ts';

const TOGETHER = 4;
const WARM_UP_ROUNDS = 6;
/** A service runs for days, and so would the bare server: its code is compiled. */
const BARE_WARM_UP_ROUNDS = 50;
const APART = fileURLToPath(new URL('bare-create-apart.ts', import.meta.url));

const ROWS = {
  create: 'create, warm: POST → answer',
  bareCreate: 'bare create: POST → answer',
  bareUncounted: 'bare create, one event in place of the batch',
  release: 'release: DELETE → answer',
  bareRelease: 'bare release: DELETE → answer',
  together: `create, ${TOGETHER} at once: → answer`,
  bareTogether: `bare create, ${TOGETHER} at once, one batch: → answer`,
  bareFirst: `bare create, ${TOGETHER} at once, 1 + 3: → answer`,
  launch: 'bare headless Chromium: launch → first reply',
  exit: 'bare headless Chromium: exit',
  launches: `bare headless Chromium, ${TOGETHER} at once: → first reply`,
} as const;
type Figure = keyof typeof ROWS;

/**
 * The service's creates and releases, in turns with the same requests to nats-server and Redis
 * without the service: what a create cannot do without on this machine.
 */
export async function benchBareCreate(
  { programs, env, rounds, print }: LifecycleOptions,
  probe: Probe,
): Promise<Verdict[]> {
  await using service = await startService({ ...env, ...keepIdle(TOGETHER) });
  await using bare = await startBare(await settingsOf(service));
  const figures = createFigures<Figure>();
  const ofService = {
    create: () => send('POST', `${service.apiUrl}/api/sessions`, '{"duration":"10m"}'),
    stop: (id: string) => stopSession(service, id),
  };
  const ofBare = (together: number) => ({
    create: () => send('POST', `${bare.url}/create/${together}`, '{"duration":"10m"}'),
    stop: (id: string) => send('DELETE', `${bare.url}/release/${id}`),
  });
  const one = async (server: Server, create: Figure, release?: Figure) => {
    const [life] = await live(server, 1);
    figures.add(create, life?.create ?? Number.NaN);
    if (release !== undefined) figures.add(release, life?.release ?? Number.NaN);
  };
  const four = async (server: Server, figure: Figure) => {
    const lives = await live(server, TOGETHER);
    figures.add(figure, ...lives.map(({ create }) => create));
  };
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
    for (const atOnce of [1, TOGETHER]) {
      await untilIdle(service, TOGETHER);
      await live(ofService, atOnce);
    }
  for (let round = 0; round < BARE_WARM_UP_ROUNDS; round += 1) {
    await live(ofBare(1), 1);
    await live(ofBare(0), 1);
    await live(ofBare(1), TOGETHER);
    await live(ofBare(TOGETHER), TOGETHER);
  }
  const steps = [
    () => one(ofService, 'create', 'release'),
    () => one(ofBare(1), 'bareCreate', 'bareRelease'),
    () => one(ofBare(0), 'bareUncounted'),
    () => four(ofService, 'together'),
    () => four(ofBare(TOGETHER), 'bareTogether'),
    () => four(ofBare(1), 'bareFirst'),
    async () => {
      const { launchMs, exitMs } = await bareLife(programs, 'headless');
      figures.add('launch', launchMs);
      figures.add('exit', exitMs);
    },
    async () => figures.add('launches', ...(await bareTogether(programs))),
  ];
  await interleave(steps, rounds, async () => {
    await untilIdle(service, TOGETHER);
    await probe.take();
  });
  print(`milliseconds${' '.repeat(38)}      p50      p95      p99     n`);
  const names = Object.keys(ROWS) as Figure[];
  for (const name of names) print(wideRow(ROWS[name], figures.of(name)));
  printShares(print, (name) => figures.of(name));
  return [];
}

function wideRow(name: string, samples: Samples): string {
  return row(name.padEnd(50), samples);
}

/** Without goals: the service beside what a create cannot do without, and that beside Chromium. */
function printShares(print: (line?: string) => void, of: (name: Figure) => Samples): void {
  type Part = readonly [figure: Figure, at: 'p50' | 'p95'];
  const ratios: [name: string, over: Part, under: Part][] = [
    ['create, p50 ÷ bare create, p50', ['create', 'p50'], ['bareCreate', 'p50']],
    ['the same, p95 ÷ p95', ['create', 'p95'], ['bareCreate', 'p95']],
    ['release, p50 ÷ bare release, p50', ['release', 'p50'], ['bareRelease', 'p50']],
    ['four at once, p50 ÷ bare, one batch, p50', ['together', 'p50'], ['bareTogether', 'p50']],
    ['four at once, p50 ÷ bare, 1 + 3, p50', ['together', 'p50'], ['bareFirst', 'p50']],
    ['bare create, p50 ÷ bare Chromium, p50', ['bareCreate', 'p50'], ['launch', 'p50']],
    ['bare create, p95 ÷ bare Chromium, p50', ['bareCreate', 'p95'], ['launch', 'p50']],
    ['create, p50 ÷ bare Chromium, p50', ['create', 'p50'], ['launch', 'p50']],
    ["bare release, p50 ÷ bare Chromium's exit, p50", ['bareRelease', 'p50'], ['exit', 'p50']],
    [
      'bare four, one batch, p95 ÷ bare Chromium four',
      ['bareTogether', 'p95'],
      ['launches', 'p50'],
    ],
    ['bare four, 1 + 3, p95 ÷ bare Chromium four', ['bareFirst', 'p95'], ['launches', 'p50']],
    ['four at once, p95 ÷ bare Chromium four', ['together', 'p95'], ['launches', 'p50']],
  ];
  print('\nwithout a goal');
  for (const [name, [over, part], [under, whole]] of ratios)
    print(`${name.padEnd(50)}${(of(over)[part] / of(under)[whole]).toFixed(3).padStart(9)}`);
}

type Answer = { status: number; text: string };
type Server = { create(): Promise<Answer>; stop(id: string): Promise<Answer> };

/** Creates at once, each to its answer, and then their releases. */
async function live(server: Server, atOnce: number) {
  const lives = Array.from({ length: atOnce }, async () => {
    const { ms, result } = await timed(() => server.create());
    if (result.status !== 201) throw new Error(`create: ${result.status} ${result.text}`);
    return { ms, id: (JSON.parse(result.text) as { id: string }).id };
  });
  const created = await Promise.all(lives);
  return Promise.all(
    created.map(async ({ ms: create, id }) => {
      const { ms: release, result } = await timed(() => server.stop(id));
      if (result.status !== 200) throw new Error(`release: ${result.status} ${result.text}`);
      return { create, release };
    }),
  );
}

type Examples = Pick<BareSettings, 'id' | 'examples' | 'answers'>;

/** The events and the answers of a session of the service. */
async function settingsOf(service: RunningService): Promise<Examples> {
  await untilIdle(service, TOGETHER);
  const created = await send('POST', `${service.apiUrl}/api/sessions`, '{"duration":"10m"}');
  const { id } = JSON.parse(created.text) as { id: string };
  const released = await stopSession(service, id);
  await using connection = await connectJetStream({ url: service.runtime.nats_url });
  const get = async (query: { last_by_subj: string } | { seq: number }) => {
    const stored = await connection.jsm.streams.getMessage(EVENTS_STREAM, query);
    if (stored === null) throw new Error(`no event at ${JSON.stringify(query)}`);
    return stored;
  };
  const ofSession = async (type: string) => get({ last_by_subj: `evt.*.session.${id}.${type}` });
  const requested = await ofSession('requested');
  return {
    id,
    examples: {
      requested: exampleOf(requested),
      ledger: exampleOf(await get({ seq: requested.seq + 1 })),
      activated: exampleOf(await ofSession('activated')),
      stopRequested: exampleOf(await ofSession('stop-requested')),
    },
    answers: { create: created.text, release: released.text },
  };
}

type Stored = { subject: string; header: Iterable<[string, string[]]>; data: Uint8Array };

/** Without the headers that are for the event store. */
function exampleOf({ subject, header, data }: Stored): Example {
  const fields = [...header].filter(([name]) => !name.startsWith('Nats-'));
  const headers = Object.fromEntries(fields.map(([name, [value = '']]) => [name, value]));
  return { subject, headers, body: Buffer.from(data).toString('latin1') };
}

/** The bare server beside stores of its own, which are started like the service's. */
async function startBare(examples: Examples): Promise<{ url: string } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'bss-bare-create-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const programs = await ensurePrograms(['nats-server', 'redis-server'], () => undefined);
  const stores = stack.use(
    await startEmbedded({
      dataDir,
      natsServer: programs['nats-server'],
      redisServer: programs['redis-server'],
      nats: {
        host: '127.0.0.1',
        port: null,
        issuer: readIssuer(newAccountSeed())?.publicKey ?? '',
      },
      onEvent: () => undefined,
    }),
  );
  const { natsUrl = '', redisUrl = '' } = stores;
  const settings: BareSettings = { natsUrl, redisUrl, ...examples };
  const server = spawn(process.execPath, [APART, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(server, 'exit');
  stack.defer(async () => {
    server.kill();
    await gone;
  });
  const ended = gone.then(() => Promise.reject(new Error('the bare server ended')));
  const [printed] = (await Promise.race([once(server.stdout, 'data'), ended])) as [Buffer];
  ended.catch(() => undefined);
  const all = stack.move();
  return { url: printed.toString().trim(), [Symbol.asyncDispose]: () => all.disposeAsync() };
}
