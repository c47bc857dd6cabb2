import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { TOO_LARGE } from '#src/browsers/chromium/cdp.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { createObserver } from '#src/browsers/observer/observer.ts';
import type {
  ObservedBrowserConnection,
  ObservedTarget,
  ObserverPart,
} from '#src/browsers/observer/part.ts';

type Command = { id: number; method: string; sessionId?: string; params: unknown };

/** A browser with one page that answers what the test lets it. */
async function openFakeBrowser() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const commands: Command[] = [];
  const silent = new Set<string>();
  const tell = (event: object) => {
    for (const client of server.clients) client.send(JSON.stringify(event));
  };
  const attach = (id: string, type = 'page') =>
    tell({
      method: 'Target.attachedToTarget',
      params: { sessionId: id, targetInfo: { targetId: id, type, url: `https://a.test/${id}` } },
    });
  server.on('connection', (client: WebSocket) =>
    client.on('message', (data: Buffer) => {
      const command = JSON.parse(data.toString()) as Command;
      commands.push(command);
      const { id, method, sessionId } = command;
      if (silent.has(method)) return;
      if (method === 'Target.setAutoAttach' && sessionId === undefined) attach('page1');
      const error = method === 'No.such' ? { error: { message: 'not found' } } : { result: {} };
      client.send(JSON.stringify({ id, ...error }));
    }),
  );
  const { port } = server.address() as AddressInfo;
  const cdp = { host: '127.0.0.1', port, path: '/devtools/browser/x' };
  const running: RunningBrowser = { workloadId: 'wl_1', cdp, vnc: cdp };
  return {
    running,
    commands,
    silent,
    tell,
    attach,
    sent: (method: string) => commands.filter((command) => command.method === method),
    connections: () => server.clients.size,
    drop: () => server.clients.forEach((client) => client.terminate()),
    close: () => {
      server.clients.forEach((client) => client.terminate());
      server.close();
    },
  };
}

let browser: Awaited<ReturnType<typeof openFakeBrowser>>;
let logged: string[];
const stack: Disposable[] = [];
beforeEach(async () => {
  browser = await openFakeBrowser();
  logged = [];
});
afterEach(() => {
  for (const one of stack.splice(0)) one[Symbol.dispose]();
  browser.close();
});

function observerOf(parts: ObserverPart[], attachWithinMs = 120_000) {
  const note = (_: unknown, text?: string) => void logged.push(text ?? '');
  const log = { warn: note, debug: () => undefined };
  const observer = createObserver({ parts, log, attachWithinMs, pauseMs: () => 1 });
  stack.push(observer);
  return observer;
}

/** A part that remembers what it was attached to. */
function aPart(types?: ('page' | 'iframe' | 'worker')[]) {
  const browsers: ObservedBrowserConnection[] = [];
  const targets: ObservedTarget[] = [];
  const pages = { attached: (target: ObservedTarget) => void targets.push(target) };
  const part: ObserverPart = {
    name: 'test',
    attached: (one) => void browsers.push(one),
    pages: types === undefined ? pages : { ...pages, types },
  };
  return { part, browsers, targets };
}

describe('an observed browser', () => {
  test('has its parts and its open pages in place once it is attached', async () => {
    const { part, browsers, targets } = aPart();
    const done: string[] = [];
    const slow: ObserverPart = {
      name: 'slow',
      attached: async (one) => {
        await one.send('Browser.setDownloadBehavior');
        done.push('browser');
      },
      pages: {
        attached: async (one) => {
          await one.send('Log.enable');
          done.push(one.url);
        },
      },
    };
    const observer = observerOf([part, slow]);
    await observer.attach(browser.running);
    expect(done.toSorted()).toEqual(['browser', 'https://a.test/page1']);
    expect(targets.map(({ targetId }) => targetId)).toEqual(['page1']);
    expect(browser.sent('Log.enable')).toMatchObject([{ sessionId: 'page1' }]);
    expect(observer.connection('wl_1')).toBe(browsers[0]);
    expect(browser.connections()).toBe(1);
  });

  test('tells each part the events of the browser, and of each target alone', async () => {
    const { part, browsers, targets } = aPart();
    await observerOf([part]).attach(browser.running);
    const heard: unknown[] = [];
    browsers[0]?.on('Browser.downloadWillBegin', (params) => heard.push(['browser', params]));
    targets[0]?.on('Log.entryAdded', (params) => heard.push(['page1', params]));
    const closed = once(targets[0]?.closed ?? new AbortController().signal, 'abort');
    browser.tell({ method: 'Log.entryAdded', params: { n: 1 } });
    browser.tell({ method: 'Log.entryAdded', sessionId: 'page2', params: { n: 2 } });
    browser.tell({ method: 'Log.entryAdded', sessionId: 'page1', params: { n: 3 } });
    browser.tell({ method: 'Browser.downloadWillBegin', params: { n: 4 } });
    browser.tell({ method: 'Target.detachedFromTarget', params: { sessionId: 'page1' } });
    await closed;
    expect(heard).toEqual([
      ['page1', { n: 3 }],
      ['browser', { n: 4 }],
    ]);
    expect(browsers[0]?.closed.aborted).toBe(false);
  });

  test('attaches to iframes and workers below a page only for a part that asks', async () => {
    await observerOf([aPart().part]).attach(browser.running);
    expect(browser.sent('Target.setAutoAttach')).toMatchObject([
      { params: { waitForDebuggerOnStart: false } },
    ]);
    const iframes = aPart(['iframe']);
    await observerOf([iframes.part]).attach({ ...browser.running, workloadId: 'wl_2' });
    expect(browser.sent('Target.setAutoAttach')).toMatchObject([
      { params: { filter: [{ type: 'page' }] } },
      { params: { filter: [{ type: 'page' }] } },
      { sessionId: 'page1', params: { filter: [{ type: 'iframe' }] } },
    ]);
    browser.attach('frame1', 'iframe');
    await expect.poll(() => iframes.targets.map(({ targetId }) => targetId)).toEqual(['frame1']);
  });

  test('holds its new pages until they are in place, if a part wants that', async () => {
    const { part } = aPart();
    const done = Promise.withResolvers<void>();
    const pages = { attached: () => done.promise, holds: () => true };
    const holding: ObserverPart = { name: 'holding', pages };
    const attaching = observerOf([part, holding]).attach(browser.running);
    const held = { sessionId: 'page2', targetInfo: { targetId: 'page2', type: 'page', url: '' } };
    await expect
      .poll(() => browser.sent('Target.setAutoAttach'))
      .toMatchObject([{ params: { waitForDebuggerOnStart: true } }]);
    const params = { ...held, waitingForDebugger: true };
    browser.tell({ method: 'Target.attachedToTarget', params });
    done.resolve();
    await attaching;
    const released = () => browser.sent('Runtime.runIfWaitingForDebugger');
    await expect.poll(released).toMatchObject([{ sessionId: 'page2' }]);
  });

  test('lets further targets go at the bound, and reads no message that is too large', async () => {
    const { part, targets } = aPart();
    await observerOf([part]).attach(browser.running);
    const large: unknown[] = [];
    targets[0]?.on(TOO_LARGE, (params) => large.push(params));
    const text = 'x'.repeat(300_000);
    browser.tell({ method: 'Log.entryAdded', params: { text }, sessionId: 'page1' });
    for (let n = 2; n <= 129; n += 1) browser.attach(`page${n}`);
    await expect.poll(() => browser.sent('Target.detachFromTarget').length).toBe(1);
    expect(targets).toHaveLength(128);
    expect(large).toEqual([{ bytes: expect.any(Number) as number }]);
  });

  test('is served although a part fails or is late', async () => {
    const failing: ObserverPart = {
      name: 'failing',
      attached: (one) => one.send('No.such'),
    };
    const { part, browsers } = aPart();
    await observerOf([failing, part]).attach(browser.running);
    expect(browsers).toHaveLength(1);
    expect(logged).toEqual(['failed to put a part in place in a browser']);
    browser.silent.add('Target.setAutoAttach');
    await observerOf([aPart().part], 20).attach({ ...browser.running, workloadId: 'wl_2' });
    expect(logged).toContain('a browser is served before all parts are in place');
  });

  test('is connected to again after its connection was lost, and not after its end', async () => {
    const { part, browsers, targets } = aPart();
    const observer = observerOf([part]);
    await observer.attach(browser.running);
    const lost = [browsers[0]?.closed, targets[0]?.closed];
    browser.drop();
    await expect.poll(() => targets.length).toBe(2);
    expect(lost.map((signal) => signal?.aborted)).toEqual([true, true]);
    expect(observer.connection('wl_1')).toBe(browsers[1]);
    observer.detach('wl_1');
    await expect.poll(() => browser.connections()).toBe(0);
    expect(observer.connection('wl_1')).toBeNull();
    await expect(browsers[1]?.send('Log.enable')).rejects.toThrow();
    expect(browsers).toHaveLength(2);
  });

  test('that is gone is given up', async () => {
    browser.close();
    await observerOf([aPart().part]).attach(browser.running);
    expect(logged).toEqual(['a browser is left unobserved: its connections were lost']);
  });

  test('is not connected to where nothing is to be put in place', async () => {
    await observerOf([]).attach(browser.running);
    expect(browser.connections()).toBe(0);
  });
});
