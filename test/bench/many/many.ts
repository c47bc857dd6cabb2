import { Agent, request } from 'node:http';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';
import { stopSession, untilIdle } from '../sessions.ts';
import { atMost, row, summarize, type Samples, type Verdict } from '../samples.ts';

const FEW = 4;
const MANY = 120;
const FEW_ROUNDS = 15;
const MANY_ROUNDS = 5;
/** The first rounds let V8 compile, and the pool fill. */
const WARM_UP_ROUNDS = 2;
const RATIO_MAX = 3;

/**
 * Creates at once, with simulated browsers that all wait. Four at once are one place in a line; of
 * 120 the answers 1 to 4 are those of the first place, 5 to 8 of the second, up to the thirtieth.
 * An answer's time is divided by its place and compared with the median of four at once.
 */
export async function benchMany(print: (line: string) => void, tiers: string): Promise<Verdict[]> {
  await using service = await startService({
    TIERS: tiers,
    POOL_MIN_IDLE: `${MANY}`,
    POOL_MAX_IDLE: `${MANY}`,
    POOL_MAX: `${2 * MANY}`,
    QUEUE_MAX: '1000',
    LOG_LEVEL: 'warn',
  });
  const agent = new Agent({ keepAlive: true, maxSockets: MANY, maxFreeSockets: MANY });
  const few = await measureRounds({ service, agent, atOnce: FEW, rounds: FEW_ROUNDS });
  const many = await measureRounds({ service, agent, atOnce: MANY, rounds: MANY_ROUNDS });
  agent.destroy();
  const perPlace = summarize(
    many.flatMap((times) => times.map((ms, at) => ms / Math.ceil((at + 1) / FEW))),
  );
  const one = summarize(few.flat());
  const all = summarize(many.flat());
  const firsts = summarize(many.map(([first = Number.NaN]) => first));
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  const rows: [string, Samples][] = [
    [`create, warm, ${FEW} at once`, one],
    [`create, warm, ${MANY} at once`, all],
    ['the first answer of them', firsts],
    ['the same by place in line', perPlace],
  ];
  for (const [name, samples] of rows) print(row(name, samples));
  return [
    atMost(`${MANY} at once by place, p95 ÷ ${FEW} at once p50`, perPlace.p95 / one.p50, RATIO_MAX),
    atMost(
      `${MANY} at once, p95 ÷ (${MANY / FEW} × ${FEW} at once p50)`,
      all.p95 / ((MANY / FEW) * one.p50),
      RATIO_MAX,
    ),
  ];
}

type Rounds = { service: RunningService; agent: Agent; atOnce: number; rounds: number };

/** The times of each round's answers, the first answer first. */
async function measureRounds({ service, agent, atOnce, rounds }: Rounds): Promise<number[][]> {
  const measured: number[][] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) {
    await untilIdle(service, MANY);
    const begunAt = performance.now();
    const created = await Promise.all(
      Array.from({ length: atOnce }, async () => {
        const id = await create(service, agent);
        return { id, ms: performance.now() - begunAt };
      }),
    );
    if (round >= WARM_UP_ROUNDS)
      measured.push(created.map(({ ms }) => ms).toSorted((a, b) => a - b));
    for (const { id } of created) await stopSession(service, id);
  }
  return measured;
}

/** The id of an active session. The agent has a kept connection for each of the creates. */
function create({ apiUrl }: RunningService, agent: Agent): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const body = '{"duration":"1h"}';
  const headers = {
    authorization: `Bearer ${DEV_KEY}`,
    'content-type': 'application/json',
    'content-length': body.length,
  };
  const sent = request(`${apiUrl}/api/sessions`, { method: 'POST', agent, headers }, (answer) => {
    let text = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    answer.on('end', () => {
      const { id, status } = JSON.parse(text) as { id: string; status: string };
      if (status === 'active') return resolve(id);
      reject(new Error(`create: ${answer.statusCode} ${text}`));
    });
  });
  sent.on('error', reject).end(body);
  return promise;
}
