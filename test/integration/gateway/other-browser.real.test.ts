import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { createCommandContext, type CommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { subscribeToSessions } from '#src/kernel/event-store/session-events.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import {
  closeWhenEnded,
  createSessionDirectory,
  HEARD_WITHIN_MS,
} from '#src/roles/gateway/access/session-lookup.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { startRealBrowsers } from '#test/support/clients/real-browser.ts';
import { browser as workload, createSession } from '#test/support/examples.ts';
import { MASTER_KEY, startTestGateway } from '#test/support/gateway.fixture.ts';
import { startFlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { eventually } from '#test/support/service/service.ts';

/**
 * A session's browser has ended, and another session's browser got its address. Both are real. The
 * gateway still believes that the first session is active there.
 */

let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let own: RunningBrowser;
let other: RunningBrowser;
/** The id of a page of the other browser, which an attacker may have learned. */
let otherPage = '';
let nats: RealNats;

beforeAll(async () => {
  [browsers, nats] = await Promise.all([startRealBrowsers(2), startNats()]);
  [own, other] = browsers.running as [RunningBrowser, RunningBrowser];
  const list = await fetch(`http://127.0.0.1:${other.cdp.port}/json/list`);
  const pages = (await list.json()) as { id: string; type: string }[];
  otherPage = pages.find(({ type }) => type === 'page')?.id ?? '';
  expect(otherPage).not.toBe('');
});

afterAll(async () => {
  await Promise.all([browsers[Symbol.asyncDispose](), nats[Symbol.asyncDispose]()]);
});

/** The session's addresses, which lead to its own browser at first. */
async function startAddresses() {
  const [cdp, vnc] = await Promise.all([
    startFlakyTcpProxy(own.cdp.port),
    startFlakyTcpProxy(own.vnc.port),
  ]);
  return {
    cdp: { host: '127.0.0.1', port: cdp.port, path: own.cdp.path },
    vnc: { host: '127.0.0.1', port: vnc.port },
    bytesToScreen: vnc.bytesSent,
    giveToOther() {
      cdp.leadTo(other.cdp.port);
      vnc.leadTo(other.vnc.port);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([cdp[Symbol.asyncDispose](), vnc[Symbol.asyncDispose]()]);
    },
  };
}

type Site = Pick<Awaited<ReturnType<typeof startTestGateway>>, 'http' | 'cdpUrl' | 'vncUrl'>;

/** How each way in answers to the session's ticket; what it says is checked as well. */
async function tryAll({ cdpUrl, vncUrl }: Site): Promise<Record<string, number>> {
  const cdp = cdpUrl('s1');
  const page = (id: string) => `${cdp.replace('/browser/', '/page/')}/${id}`;
  const document = (name: string) => statusOf(`${cdp.replace('ws:', 'http:')}/json/${name}`);
  const ways = {
    version: document('version'),
    list: document('list'),
    protocol: document('protocol'),
    page: upgrade(page(otherPage)),
    browser: upgrade(cdp),
    screen: upgrade(vncUrl('s1')),
  };
  const answers = Object.entries(ways).map(async ([way, status]) => [way, await status] as const);
  return Object.fromEntries(await Promise.all(answers));
}

function all(status: number): Record<string, number> {
  const ways = ['version', 'list', 'protocol', 'page', 'browser', 'screen'];
  return Object.fromEntries(ways.map((way) => [way, status]));
}

async function statusOf(url: string): Promise<number> {
  const answer = await fetch(url);
  if (!answer.ok) expectNothingOfBrowser(await answer.text());
  return answer.status;
}

/** The status of a WebSocket handshake. */
async function upgrade(url: string): Promise<number> {
  const socket = new WebSocket(url);
  return await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        expectNothingOfBrowser(text);
        resolve(response.statusCode ?? 0);
      });
    });
  });
}

function expectNothingOfBrowser(text: string): void {
  for (const word of [otherPage, 'Chrome', 'RFB', 'Browser']) expect(text).not.toContain(word);
}

describe('a session’s ticket at an address that another browser has taken', () => {
  test('opens neither document, page nor screen', async () => {
    await using addresses = await startAddresses();
    await using site = await startTestGateway();
    site.directory.set('s1', { status: 'active', cdp: addresses.cdp, vnc: addresses.vnc });
    expect((await fetch(`${site.cdpUrl('s1').replace('ws:', 'http:')}/json/list`)).status).toBe(
      200,
    );
    expect(await upgrade(site.vncUrl('s1'))).toBe(101);

    addresses.giveToOther();
    expect(await tryAll(site)).toEqual(all(502));
    expect(site.logged.join()).toContain('another browser');
    expect(addresses.bytesToScreen()).toBe(0);
  });
});

describe('a gateway that no longer receives events', () => {
  let stack: AsyncDisposableStack;
  let context: CommandContext;
  let way: Awaited<ReturnType<typeof startFlakyTcpProxy>>;
  let addresses: Awaited<ReturnType<typeof startAddresses>>;
  let site: Awaited<ReturnType<typeof startTestGateway>>;
  let silenceMs: () => number;
  /** Whether the gateway takes note of the silence, after which its connection counts as lost. */
  let hasNoticed = false;

  const tell = (command: SessionCommand) =>
    handleSessionCommand(
      context,
      { organizationId: 'org', id: 's1' },
      command,
      newMetadata('test'),
      {
        concurrentSessions: 5,
      },
    );

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    const direct = stack.use(await connectJetStream({ url: nats.url }));
    context = createCommandContext(createJetStreamEventStore(direct), Date.now);
    addresses = stack.use(await startAddresses());
    way = stack.use(await startFlakyTcpProxy(nats.port));
    await startGatewayBehind();
    const organization = { id: 'org', name: 'Org', tier: 'max', credits: 10_000 } as const;
    await registerOrganization(context, organization, newMetadata('test'));
    const now = Date.now();
    await tell(createSession({ now }));
    await tell({ type: 'AssignSession', workloadId: 'wl_1', serverId: 'srv_1' });
    const { cdp, vnc } = addresses;
    await tell({ type: 'ActivateSession', workload: { ...workload(), cdp, vnc }, now });
  });

  /** A gateway as its role composes it, whose way to NATS the test can freeze. */
  async function startGatewayBehind() {
    const connection = stack.use(
      await connectJetStream({ url: `nats://127.0.0.1:${way.port}`, onFailure: () => undefined }),
    );
    const eventStore = stack.use(
      await withSharedSubscription(createJetStreamEventStore(connection)),
    );
    const stateCache = createStateCache();
    const sessionEvents = stack.use(
      await subscribeToSessions(eventStore, () => undefined, stateCache),
    );
    silenceMs = eventStore.silenceMs;
    const reception = {
      isConnected: () => !hasNoticed || connection.isConnected(),
      eventsSilenceMs: () => (hasNoticed ? eventStore.silenceMs() : 0),
    };
    const ownContext = createCommandContext(eventStore, Date.now, stateCache);
    site = stack.use(
      await startTestGateway({
        sessions: createSessionDirectory(ownContext, {
          reception,
          linkKeys: createLinkKeys(MASTER_KEY),
        }),
        limits: { lookupTimeoutMs: 1_000 },
      }),
    );
    stack.defer(closeWhenEnded(sessionEvents, site.gateway));
  }

  afterEach(async () => {
    way.thaw();
    await stack.disposeAsync();
  });

  test('connects no client to the browser that has taken the address', async () => {
    await eventually(
      async () => (await upgrade(site.cdpUrl('s1'))) === 101,
      'the session is known',
    );
    way.freeze();
    addresses.giveToOther();
    await tell({ type: 'StopSession', reason: 'user', now: Date.now() });
    // While it still believes its memory, the browser's identity is what refuses.
    expect(await tryAll(site)).toEqual(all(502));
    // Once it has heard nothing for longer than a heartbeat takes, it asks, and gets no answer.
    hasNoticed = true;
    await eventually(() => silenceMs() > HEARD_WITHIN_MS, 'the silence is noticed');
    expect(await tryAll(site)).toEqual(all(503));
    way.thaw();
    await eventually(async () => (await upgrade(site.cdpUrl('s1'))) === 410, 'it hears again');
    expect(await tryAll(site)).toEqual(all(410));
  });
});
