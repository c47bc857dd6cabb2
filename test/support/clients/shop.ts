import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { docker } from '#test/support/servers/docker-engine.ts';

/** A site that one logs in to, and that keeps something of every kind in the browser. */

/**
 * For a page: `store(name)` keeps the name in each kind of storage, `known()` finds it there;
 * `megabytes(count)` stores what cannot be compressed.
 */
const SCRIPT = `
  const open = () => new Promise((resolve, reject) => {
    const asked = indexedDB.open('shop', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('all');
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = reject;
  });
  const done = (asked) =>
    new Promise((resolve) => (asked.onsuccess = () => resolve(asked.result)));
  async function store(name) {
    localStorage.name = name;
    const all = (await open()).transaction('all', 'readwrite').objectStore('all');
    await done(all.put(name, 'name'));
    await navigator.serviceWorker.register('/worker.js');
    await navigator.serviceWorker.ready;
    return 'stored';
  }
  async function known() {
    const all = (await open()).transaction('all').objectStore('all');
    return {
      cookies: document.cookie.split('; ').toSorted(),
      local: localStorage.name ?? null,
      indexed: (await done(all.get('name'))) ?? null,
      worker: (await navigator.serviceWorker.getRegistration()) !== undefined,
    };
  }
  const megabytes = async (count) => {
    const cache = await caches.open('shop');
    for (let at = 0; at < count; at += 1) {
      const bytes = new Uint8Array(1048576);
      for (let from = 0; from < bytes.length; from += 65536)
        crypto.getRandomValues(bytes.subarray(from, from + 65536));
      await cache.put('/part-' + at, new Response(bytes));
    }
    return count;
  };`;
const PAGE = `<title>Shop</title><script>${SCRIPT}</script>`;
const WORKER = 'onfetch = () => {};';

/** What `known()` finds of somebody who has logged in: one cookie has no expiry. */
export function allOf(name: string) {
  return { cookies: [`as=${name}`, `kept=${name}`], local: name, indexed: name, worker: true };
}

/** `/log-in?as=<name>` sets two cookies. */
export async function startShop(): Promise<{ origin: string } & Disposable> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop');
    const name = searchParams.get('as');
    if (name !== null)
      response.setHeader('set-cookie', [`as=${name}`, `kept=${name}; Max-Age=86400`]);
    const isWorker = pathname === '/worker.js';
    response.setHeader('content-type', isWorker ? 'text/javascript' : 'text/html');
    response.end(isWorker ? WORKER : PAGE);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    [Symbol.dispose]: () => server.close(),
  };
}

const PORT_IN_CONTAINER = 8000;
const SERVER = `
  use IO::Socket::INET;
  $SIG{CHLD} = 'IGNORE';
  my $listening = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => ${PORT_IN_CONTAINER}, Listen => 50, ReuseAddr => 1);
  while (1) {
    my $client = $listening->accept or next;
    next if fork;
    my $line = <$client>;
    while (my $header = <$client>) { last if $header =~ /^\\r?$/; }
    my ($name) = $line =~ /as=(\\w+)/;
    my $cookies = $name
      ? "Set-Cookie: as=$name\\r\\nSet-Cookie: kept=$name; Max-Age=86400\\r\\n" : '';
    my $is_worker = $line =~ /worker/;
    my $type = $is_worker ? 'text/javascript' : 'text/html';
    my $body = $is_worker ? $ENV{WORKER} : $ENV{PAGE};
    print $client "HTTP/1.1 200 OK\\r\\nContent-Type: $type\\r\\nConnection: close\\r\\n" .
      "Content-Length: " . length($body) . "\\r\\n$cookies\\r\\n$body";
    exit;
  }`;

const LISTENS = `: </dev/tcp/127.0.0.1/${PORT_IN_CONTAINER}`;
const UNTIL_LISTENING = `until (${LISTENS}) 2>/dev/null; do sleep 0.05; done`;

/** The same site in a browser's container, which reaches no other one of this machine. */
export function startShopIn(container: string): string {
  const environment = ['--env', `PAGE=${PAGE}`, '--env', `WORKER=${WORKER}`];
  docker('exec', '--detach', ...environment, container, 'perl', '-e', SERVER);
  // A page that is refused loads again by itself, in the middle of what is done on the next one.
  docker('exec', container, 'timeout', '120', 'bash', '-c', UNTIL_LISTENING);
  return `http://127.0.0.1:${PORT_IN_CONTAINER}`;
}
