import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { startSteadyTraffic } from '#test/support/load/steady-traffic.ts';
import { startTopology, type Topology } from '#test/support/service/compose-topology.ts';
import { docker, hasDocker } from '#test/support/servers/docker-engine.ts';
import { eventually, type Answer } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/**
 * Parts that are killed, and replaced as in an upgrade. CI kills the leader of NATS and replaces a
 * gateway, which no other test does to a whole service. The others have tests without a cluster:
 * killed-at-each-step kills the provisioner and Redis, streams-killed an API. Only the soak finds a
 * fault of theirs that a cluster adds.
 */
const KILLED = soakOr(
  ['nats', 'api-1', 'projector-1', 'gateway-1', 'provisioner', 'redis'],
  ['nats'],
);
const REPLACED = soakOr(['api-1', 'api-2', 'gateway-1', 'gateway-2', 'provisioner'], ['gateway-1']);
/** Longer than the default idle time-out of a proxy. */
const IDLE_MS = 65_000;
const WITHIN_MS = 120_000;
/** Twenty requests a minute. */
const EVERY_MS = 3_000;

/** Prints the npm packages of an image without an entry, and the Debian packages without a text. */
const UNLICENSED = [
  'sh',
  '-c',
  `cd /app && test -s LICENSE || echo LICENSE
   find node_modules -name package.json | grep -E 'node_modules/(@[^/]+/)?[^/@]+/package.json$' |
     node -e '
       const { readFileSync } = require("fs");
       const text = readFileSync(".tools/dashboard/licenses.txt", "utf8");
       for (const file of readFileSync(0, "utf8").trim().split("\\n")) {
         const { name, version } = JSON.parse(readFileSync(file, "utf8"));
         if (!text.includes(name + " " + version + " (")) console.log(file);
       }'
   # One package of each source has the text.
   dpkg-query -W -f '\${source:Package} \${Package}\\n' | while read source package; do
     test -s /usr/share/doc/$package/copyright && echo $source has || echo $source lacks $package
   done | sort | awk '$2 == "has" { has[$1] = 1 } $2 == "lacks" && !has[$1] { print $3 }'`,
];

describe.runIf(hasDocker())('a cluster behind a proxy with TLS', () => {
  let topology: Topology;
  beforeAll(async () => {
    topology = await startTopology('cluster', { POOL_MIN_IDLE: '2', POOL_MAX: '8', TIERS: PLENTY });
  }, 900_000);
  afterAll(() => topology?.[Symbol.asyncDispose](), 300_000);

  async function statusOf(id: string): Promise<string> {
    return String((await topology.request('GET', `/api/sessions/${id}`)).body.status);
  }

  /** A create waits 15 s for its browser, which a launch on a busy machine may take. */
  async function untilBrowserWaits(): Promise<void> {
    const isIdle = async () => {
      const { body } = await topology.request('GET', '/api/status');
      return body.autoscaler?.pool_status.idle > 0;
    };
    await eventually(isIdle, 'a browser waits for a session', WITHIN_MS);
  }

  type Session = { body: Answer['body']; driver: WebSocket; watcher: WebSocket; usedAt: number };
  /** Left idle while other tests run. */
  let session: Session;

  it('gives a session that is driven, watched and extended', async () => {
    const { prefix } = topology;
    await untilBrowserWaits();
    const { status, body } = await topology.request('POST', '/api/sessions', { duration: '1h' });
    expect([status, body.status]).toEqual([201, 'active']);
    expect(body.cdp_url.startsWith(`${prefix}/devtools/browser/`)).toBe(true);
    expect(body.vnc_url.startsWith(`${prefix}/vnc/`)).toBe(true);
    expect(body.viewer_url.startsWith(`${prefix.replace('wss', 'https')}/vnc/`)).toBe(true);

    const driver = await topology.open(body.cdp_url);
    const watcher = await topology.open(body.vnc_url, ['binary']);
    const [greeting] = (await once(watcher, 'message')) as [Buffer];
    expect(greeting.toString()).toMatch(/^RFB 003\.00\d\n$/);
    expect(await product(driver)).toContain('Chrome');
    session = { body, driver, watcher, usedAt: performance.now() };

    const extended = await topology.request('POST', `/api/sessions/${body.id}/extend`, {
      duration: '30m',
    });
    expect(Date.parse(extended.body.expires_at) - Date.parse(body.expires_at)).toBe(30 * 60_000);
  });

  it('runs each part as an ordinary user that can write nothing but its data, from a small image', async () => {
    const inspect = (format: string, id: string) => docker('inspect', '--format', format, id);
    const [image, base] = ['browser-session-service', 'node:24-bookworm-slim'];
    const bytes = Number(inspect('{{.Size}}', image)) - Number(inspect('{{.Size}}', base));
    expect(bytes).toBeLessThan(300_000_000);
    const part = topology.container('timekeeper-1');
    expect(inspect('{{.HostConfig.ReadonlyRootfs}} {{.Config.User}}', part)).toBe('true node');
    const absent = ['exec', part, 'sh', '-c', 'command -v nats-server redis-server || echo none'];
    expect(docker(...absent)).toBe('none');
    const isHealthy = () => inspect('{{.State.Health.Status}}', part) === 'healthy';
    await eventually(isHealthy, 'it says that it is well', WITHIN_MS);
    // If the signal did not reach the process, the engine would kill it in the end: 137.
    docker('stop', '--time', '60', part);
    expect(inspect('{{.State.ExitCode}}', part)).toBe('0');
    docker('start', part);
    await eventually(isHealthy, 'it is well again', WITHIN_MS);
  });

  it('has the licences of all that is in the image', () => {
    expect(
      docker('run', '--rm', '--network', 'none', 'browser-session-service', ...UNLICENSED),
    ).toBe('');
  });

  it('rate-limits unauthenticated clients by their address, not by a forged header', async () => {
    let windowEndsAt = 0;
    const { mine, other } = await eventually(
      async () => {
        // The other client's request of an earlier attempt counts in its window.
        if (Date.now() < windowEndsAt) return null;
        const mine: Counted[] = [];
        for (let claimed = 1; claimed <= 6; claimed += 1)
          mine.push(await unauthenticated({ 'x-forwarded-for': `203.0.113.${claimed}` }));
        const other = countedElsewhere(topology);
        windowEndsAt = Number(other.reset) * 1000;
        // Either all requests are in one window, or they are repeated.
        return mine.every(({ reset }) => reset === other.reset) ? { mine, other } : null;
      },
      'a window in which all were counted',
      WITHIN_MS,
    );
    // Each of the two API processes counts unauthenticated requests by itself: one of them has
    // counted three.
    expect(Math.min(...mine.map(({ remaining }) => remaining))).toBeLessThanOrEqual(97);
    // The proxy's own address would be the same for both.
    expect(other.remaining).toBe(99);
  });

  async function unauthenticated(headers: Record<string, string>): Promise<Counted> {
    const none = { authorization: '', ...headers };
    return countedBy(await topology.request('GET', '/api/sessions', undefined, none));
  }

  it('serves metrics of each part with the token, only inside the network', async () => {
    const roles = {
      'api-2': ['api', 'bss_pool_browsers'],
      'projector-1': ['projector', 'bss_projection_lag_seconds'],
      'gateway-1': ['gateway', 'bss_gateway_connections_total'],
      'timekeeper-2': ['timekeeper', 'bss_event_loop_delay_seconds'],
      archivist: ['archivist', 'bss_event_loop_delay_seconds'],
      provisioner: ['provisioner', 'bss_session_starts_total'],
    };
    for (const [part, [role, family]] of Object.entries(roles)) {
      const { status, text } = topology.scrape(part, true);
      expect([part, status]).toEqual([part, 200]);
      expect(text).toContain(`bss_process_info{roles="${role}"} 1`);
      expect(text).toMatch(new RegExp(`^${family}\\b.* \\d`, 'm'));
      expect([part, topology.scrape(part, false).status]).toEqual([part, 401]);
    }
  });

  it('answers with the API’s error bodies, also if the proxy refuses', async () => {
    const { request } = topology;
    const summary = ({ status, body }: Answer) => [status, body.error, body.code];
    const long = { authorization: `Bearer ${'x'.repeat(10_000)}` };
    expect(summary(await request('GET', '/api/sessions', undefined, long))).toEqual([
      ...[401, 'UNAUTHORIZED', 401],
    ]);
    const large = { description: 'x'.repeat(1_200_000) };
    expect(summary(await request('POST', '/api/sessions', large))).toEqual([
      ...[413, 'PAYLOAD_TOO_LARGE', 413],
    ]);
    expect(summary(await request('GET', '/metrics'))).toEqual([404, 'NOT_FOUND', 404]);
  });

  it('keeps the open sockets of a session without use for a minute, until its stop', async () => {
    const { body, driver, watcher, usedAt } = session;
    // Time has to pass here: it is what is tested. The tests before took most of it.
    await new Promise((resolve) => setTimeout(resolve, usedAt + IDLE_MS - performance.now()));
    expect(await product(driver)).toContain('Chrome');
    expect(watcher.readyState).toBe(watcher.OPEN);

    const closed = [once(driver, 'close'), once(watcher, 'close')];
    expect((await topology.request('DELETE', `/api/sessions/${body.id}`)).status).toBe(200);
    await Promise.all(closed);
    await eventually(async () => (await statusOf(body.id)) === 'stopped', 'stopped', WITHIN_MS);
  });

  it('loses and duplicates no session while its parts are killed and replaced', async () => {
    const traffic = startSteadyTraffic(topology, EVERY_MS);
    const { created, names, stopped } = traffic;
    async function moreCreated(more: number): Promise<void> {
      const enough = created.size + more;
      await eventually(() => created.size >= enough, `${more} more creates`, WITHIN_MS);
    }
    const lines: string[] = [];
    function lineOf(what: string, since: number): string {
      const refused = traffic.refusedSince(since).toFixed(1);
      const slowest = traffic.slowestSince(since).toFixed(1);
      return `${what.padEnd(20)} ${refused} s of refusals, slowest ${slowest} s`;
    }
    for (const part of KILLED) {
      await moreCreated(2);
      const name = part === 'nats' ? await leader() : part;
      const killedAt = performance.now();
      await topology.crash(name);
      await moreCreated(3);
      await eventually(isWhole, `the cluster is whole without ${name}’s first life`, WITHIN_MS);
      lines.push(lineOf(`${name} killed`, killedAt));
    }
    for (const part of REPLACED) {
      const replacedAt = performance.now();
      await topology.replace(part);
      await moreCreated(1);
      await eventually(isWhole, `the cluster is whole with another ${part}`, WITHIN_MS);
      lines.push(lineOf(`another ${part}`, replacedAt));
    }
    await traffic.finish();
    expect(await isDrivable()).toBe(true);
    console.log(`At 20 sessions a minute:\n  ${lines.join('\n  ')}`);

    expect(traffic.wrong).toEqual([]);
    expect([created.size, stopped.size]).toEqual([names.size, names.size]);
    for (const id of stopped)
      await eventually(async () => ENDED.includes(await statusOf(id)), `${id} ended`, WITHIN_MS);
    const listed = await everySession();
    const kept = listed.filter(({ session_name: name }) => names.has(name));
    expect(kept.map(({ session_name: name, id }) => [name, id]).toSorted()).toEqual(
      [...created].toSorted(),
    );
    // Both commands fold the whole event store again, and fail if anything differs.
    await topology.bss('audit', 'ledger');
    await topology.bss('projections', 'verify');
    await eventually(() => leaks() === 0, 'no browser is left of a session', WITHIN_MS);
    // As of the server's next comparison, within a minute.
    await eventually(hasNoLeaks, 'the server’s own comparison finds none', WITHIN_MS);
  });

  async function isDrivable(): Promise<boolean> {
    await untilBrowserWaits();
    const { body } = await topology.request('POST', '/api/sessions', { duration: '1h' });
    const driver = await topology.open(body.cdp_url);
    const says = await product(driver);
    driver.close();
    await topology.request('DELETE', `/api/sessions/${body.id}`);
    return says.includes('Chrome');
  }

  async function isWhole(): Promise<boolean> {
    const answer = await topology.request('GET', '/api/health').catch(() => null);
    return answer?.body.status === 'healthy';
  }

  /** The name of the JetStream leader of the events. */
  async function leader(): Promise<string> {
    const { findings } = (await topology.bss('doctor')) as { findings: { what: string }[] };
    const led = findings.map(({ what }) => /^EVENTS .* led by (nats-\d)$/.exec(what)?.[1]);
    return led.find((name) => name !== undefined) ?? 'EVENTS has no leader';
  }

  async function everySession(): Promise<{ id: string; session_name: string }[]> {
    const all: { id: string; session_name: string }[] = [];
    for (;;) {
      const path = `/api/sessions?limit=100&offset=${all.length}`;
      const { body } = await topology.request('GET', path);
      all.push(...body.sessions);
      if (all.length >= body.total || body.sessions.length === 0) return all;
    }
  }

  async function hasNoLeaks(): Promise<boolean> {
    const servers = (await topology.bss('servers', 'list')) as Record<string, unknown>[];
    return servers.map((server) => server['leaks']).join() === '0';
  }

  /** The number of containers named after a session; all sessions have ended. */
  function leaks(): number {
    const filter = ['--filter', `network=${topology.sessionsNetwork}`];
    const names = docker('ps', '-a', ...filter, '--format', '{{.Names}}').split('\n');
    return names.filter((name) => name.includes('.ses_')).length;
  }
});

const PLENTY = JSON.stringify({ max: { requests_per_minute: 100_000 } });
const ENDED = ['stopped', 'failed'];

async function product(socket: WebSocket): Promise<string> {
  socket.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
  const [reply] = (await once(socket, 'message')) as [Buffer];
  return (JSON.parse(reply.toString()) as { result: { product: string } }).result.product;
}

type Counted = { remaining: number; reset: string };

function countedBy({ headers }: Pick<Answer, 'headers'>): Counted {
  return {
    remaining: Number(headers.get('x-ratelimit-remaining')),
    reset: headers.get('x-ratelimit-reset') ?? '',
  };
}

/** The answer to an external client: a part's container sends the request to the proxy. */
function countedElsewhere(topology: Topology): Counted {
  const script = `
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    const { headers } = await fetch('https://nginx:8443/api/sessions');
    console.log(JSON.stringify([...headers]));`;
  const args = ['--no-warnings', '--input-type=module', '--eval', script];
  const said = docker('exec', topology.container('gateway-2'), 'node', ...args);
  return countedBy({ headers: new Headers(JSON.parse(said) as [string, string][]) });
}
