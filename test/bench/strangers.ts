import { WebSocket } from 'ws';
import { sleep } from '#src/kernel/async/sleep.ts';
import { newKey, newOrganization, untilAnswered } from '#test/support/clients/command-line.ts';
import { startService, type RunningService } from '#test/support/service/service.ts';
import { send } from './http-client.ts';
import { atLeast, summarize, type Verdict } from './samples.ts';

/**
 * What a hostile organization costs a polite one. Both use one installation with simulated
 * browsers; the hostile one does what its tier's limits allow, and goes on where it is refused.
 */

/** Rounds of each kind, one after the other in turns. A round of the hostile one is its minute. */
const ROUNDS = 3;
const ALONE_MS = 20_000;
const BESIDE_MS = 60_000;
const POLITE_WORKERS = 4;
/** Pause of the hostile one after an answer: while it is let, some 150 requests a second. */
const PAUSE_MS = 25;
const HOSTILE_WORKERS = 4;
/** Sessions that the hostile one has had before: its usage, lists and streams are long. */
const HISTORY = 200;

type Print = (line?: string) => void;
type Organization = { id: string; key: string };

/** Lives of a session a second for the polite organization, alone and beside the hostile one. */
export async function benchStrangers(print: Print): Promise<Verdict[]> {
  await using service = await startService({
    TIERS: JSON.stringify({
      max: { requests_per_minute: 1e9, concurrent_sessions: 1e5, credits: 1e9 },
    }),
    POOL_MAX: '80',
    POOL_MIN_IDLE: '8',
    POOL_MAX_IDLE: '8',
    LOG_LEVEL: 'error',
  });
  const polite = await organization(service, 'max');
  const hostile = await organization(service, 'pro');
  await remember(service, hostile);
  await lives(service, polite, 5_000);

  const [alone, beside]: [number[], number[]] = [[], []];
  const answers = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await lives(service, polite, ALONE_MS));
    const stop = new AbortController();
    const misusing = misuse(service, hostile, answers, stop.signal);
    beside.push(await lives(service, polite, BESIDE_MS));
    stop.abort();
    await misusing;
  }
  print(`\nlives of a session a second${' '.repeat(17)}   median  rounds`);
  for (const [name, rates] of Object.entries({ alone, 'beside the hostile one': beside })) {
    const rounds = rates.map((rate) => rate.toFixed(1)).join(' ');
    print(`${name.padEnd(44)}${summarize(rates).p50.toFixed(1).padStart(9)}  ${rounds}`);
  }
  const counts = [...answers].toSorted().map(([answer, count]) => `${count} × ${answer}`);
  print(`answers to the hostile one: ${counts.join(', ')}`);
  const ratio = summarize(beside).p50 / summarize(alone).p50;
  return [atLeast('throughput beside a hostile organization ÷ alone', ratio, 0.9)];
}

async function organization(service: RunningService, tier: string): Promise<Organization> {
  const id = await newOrganization(service, '--tier', tier);
  const { api_key: key } = await newKey(service, id, 'owner');
  await untilAnswered(service, key, 200);
  return { id, key };
}

/** Sessions that the hostile organization has had; its limits make this take a minute or two. */
async function remember(service: RunningService, { key }: Organization): Promise<void> {
  const body = { labels: { one: 'a', two: 'b', three: 'x'.repeat(60) } };
  for (let made = 0; made < HISTORY;) {
    const { status, text } = await ask(service, key, 'POST', '/api/sessions', body);
    if (status === 201) {
      const { id } = JSON.parse(text) as { id: string };
      await untilLet(() => ask(service, key, 'DELETE', `/api/sessions/${id}`));
      made += 1;
    } else await sleep(1_000);
  }
}

/** Sends the request again and again until it is not refused by the rate limit. */
async function untilLet(send: () => Promise<{ status: number; text: string }>) {
  for (;;) {
    const answer = await send();
    if (answer.status !== 429) return answer;
    await sleep(1_000);
  }
}

/** Runs whole lives of sessions (create, read, list, stop). @returns lives a second */
async function lives(
  service: RunningService,
  { key }: Organization,
  forMs: number,
): Promise<number> {
  const begunAt = performance.now();
  let count = 0;
  async function work(): Promise<void> {
    while (performance.now() - begunAt < forMs) {
      const created = await ask(service, key, 'POST', '/api/sessions', { duration: '10m' });
      const { id, status } = JSON.parse(created.text) as { id: string; status: string };
      if (status !== 'active') throw new Error(`create: ${created.status} ${created.text}`);
      await ask(service, key, 'GET', `/api/sessions/${id}`);
      await ask(service, key, 'GET', '/api/sessions?limit=20');
      await ask(service, key, 'DELETE', `/api/sessions/${id}`);
      count += 1;
    }
  }
  await Promise.all(Array.from({ length: POLITE_WORKERS }, work));
  return (count * 1_000) / (performance.now() - begunAt);
}

/** Everything that a tenant may do, as often as it is let, until the signal aborts. */
async function misuse(
  service: RunningService,
  { key }: Organization,
  answers: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const past = new Date(Date.now() - 1_000).toISOString();
  const labels = ['one=a', 'two=b'].map((label) => `label=${encodeURIComponent(label)}`).join('&');
  const sockets: WebSocket[] = [];
  const note = (what: string) => void answers.set(what, (answers.get(what) ?? 0) + 1);
  const get = async (path: string) => note(`${(await ask(service, key, 'GET', path)).status}`);
  const acts: (() => Promise<void>)[] = [
    () => get('/api/usage?limit=100'),
    () => get(`/api/status?as_of=${past}`),
    () => get(`/api/sessions?as_of=${past}&limit=100`),
    () => get(`/api/sessions?${labels}&limit=100`),
    () => get('/docs'),
    () => get('/api/asyncapi.json'),
    async () => {
      // A browser of its own is launched for a timezone; the session ends before it is there.
      const body = { timezone: 'Europe/Zurich' };
      const more = { prefer: 'respond-async' };
      const created = await ask(service, key, 'POST', '/api/sessions', body, more);
      note(`${created.status}`);
      const { id } = JSON.parse(created.text) as { id?: string };
      if (id !== undefined)
        note(`${(await ask(service, key, 'DELETE', `/api/sessions/${id}`)).status}`);
    },
    async () => {
      const created = await ask(service, key, 'POST', '/api/sessions', { duration: '10m' });
      note(`${created.status}`);
      const { cdp_url: url } = JSON.parse(created.text) as { cdp_url?: string };
      if (url !== undefined) for (let one = 0; one < 70; one += 1) sockets.push(hold(url, note));
    },
    async () => note(`stream ${await stream(service, key, signal)}`),
  ];
  async function work(first: number): Promise<void> {
    for (let turn = first; !signal.aborted; turn += 1) {
      await acts[turn % acts.length]?.();
      await sleep(PAUSE_MS, signal);
    }
  }
  await Promise.all(Array.from({ length: HOSTILE_WORKERS }, (_, worker) => work(worker * 2)));
  for (const socket of sockets) socket.terminate();
  const list = '/api/sessions?status=active&limit=100';
  const { text } = await untilLet(() => ask(service, key, 'GET', list));
  const { sessions } = JSON.parse(text) as { sessions: { id: string }[] };
  for (const { id } of sessions)
    await untilLet(() => ask(service, key, 'DELETE', `/api/sessions/${id}`));
}

/** A connection that asks for a page now and then. */
function hold(url: string, note: (answer: string) => void): WebSocket {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  socket.on('open', () => note('socket 101')).on('error', () => undefined);
  socket.on('unexpected-response', (_, { statusCode }) => {
    note(`socket ${statusCode}`);
    socket.terminate();
  });
  return socket;
}

/** Opens a stream of all events from the first on, and reads it to the abort. */
async function stream(service: RunningService, key: string, signal: AbortSignal): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'last-event-id': '0' };
  const response = await fetch(`${service.apiUrl}/api/events`, { headers, signal });
  void response.body?.pipeTo(new WritableStream()).catch(() => undefined);
  return response.status;
}

function ask(
  { apiUrl }: RunningService,
  key: string,
  method: string,
  path: string,
  body?: object,
  more: Record<string, string> = {},
) {
  const text = body === undefined ? '' : JSON.stringify(body);
  return send(method, apiUrl + path, text, { authorization: `Bearer ${key}`, ...more });
}
