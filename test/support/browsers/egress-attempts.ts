import { sleep } from '#src/kernel/async/sleep.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { attachPage, evaluate, openCdp, type Cdp } from './browsers.fixture.ts';

/** What a page tries in order to reach a host; `hello`: it was reached. */
export type Attempts = Record<
  | 'page'
  | 'fetch'
  | 'webSocket'
  | 'redirect'
  | 'dnsTrick'
  | 'serviceWorker'
  | 'rawAddress'
  | 'ipv6'
  | 'metadata'
  | 'quic'
  | 'allowed'
  | 'allowedWebSocket'
  | 'allowedServiceWorker',
  string
> & {
  /** Addresses that WebRTC found to be reached at, beside the hidden ones of this host. */
  webRtc: string[];
};

/** Names that the session's rules know, all of the site at `address`:`port`. */
export type Targets = {
  /** Below `localhost`, whose pages may have service workers without TLS. */
  allowed: string;
  denied: string;
  /** An allowed name that resolves to a private address. */
  trick: string;
  address: string;
  port: number;
};

/** Asks for the addresses that WebRTC can be reached at. */
const GATHER = `async () => {
    const server = 'stun:' + address + ':' + port;
    const relay = 'turn:' + address + ':' + port;
    const login = { username: 'a', credential: 'b' };
    const peer = new RTCPeerConnection({ iceServers: [
      { urls: server }, { urls: relay, ...login }, { urls: relay + '?transport=tcp', ...login },
    ] });
    const found = [];
    peer.onicecandidate = ({ candidate }) => candidate && found.push(candidate.candidate);
    peer.createDataChannel('data');
    await peer.setLocalDescription();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    peer.close();
    return found.filter((one) => !one.includes('.local '));
  }`;

/**
 * Runs in a page of the allowed site. Each attempt ends as `hello`, `failed` or, after half a
 * minute, `silence`.
 */
const IN_PAGE = `async ({ allowed, denied, trick, address, port }) => {
  const silence = () => new Promise((resolve) => setTimeout(() => resolve('silence'), 30000));
  const attempt = (act) =>
    Promise.race([Promise.resolve().then(act).catch(() => 'failed'), silence()]);
  const get = (url) => attempt(() => fetch(url).then((answer) => answer.text()));
  const socket = (host) => attempt(() => new Promise((resolve) => {
    const opened = new WebSocket('ws://' + host + ':' + port + '/');
    opened.onopen = () => resolve('hello');
    opened.onerror = () => resolve('failed');
  }));
  const worker = (host) => attempt(async () => {
    await navigator.serviceWorker.register('/worker.js');
    const { active } = await navigator.serviceWorker.ready;
    const said = new Promise((resolve) => {
      const hear = ({ data }) => resolve(data);
      navigator.serviceWorker.addEventListener('message', hear, { once: true });
    });
    active.postMessage('http://' + host + ':' + port + '/');
    return said;
  });
  const gather = ${GATHER};
  const quic = () => attempt(async () => {
    await new WebTransport('https://' + address + ':' + port + '/').ready;
    return 'hello';
  });
  const at = (host) => 'http://' + host + ':' + port + '/';
  const six = '[::ffff:' + address + ']';
  const [one, two, three] = [worker(denied), gather(), quic()];
  return JSON.stringify({
    allowed: await get(at(allowed)),
    allowedWebSocket: await socket(allowed),
    fetch: await get(at(denied)),
    webSocket: await socket(denied),
    redirect: await get(at(allowed) + 'to?url=' + encodeURIComponent(at(denied))),
    dnsTrick: await get(at(trick)),
    rawAddress: await get(at(address)),
    ipv6: await get(at(six)),
    metadata: await get('http://169.254.169.254/'),
    serviceWorker: await one,
    allowedServiceWorker: await worker(allowed),
    webRtc: await two,
    quic: await three,
  });
}`;

/** Chromium cancels requests when an address of the machine changes, as by tests of networks. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';

/** Leads a page there. @returns `hello`, `failed` or, after half a minute, `silence` */
async function visit(cdp: Cdp, session: string, url: string): Promise<string> {
  for (let failure: unknown = NETWORK_CHANGED; failure === NETWORK_CHANGED;)
    failure = (await cdp.send('Page.navigate', { url }, session))['errorText'];
  const text = 'document.readyState === "complete" ? document.body.innerText : null';
  for (let tried = 0; tried < 600; tried += 1) {
    const said = await evaluate(cdp, session, text).catch(() => null);
    if (typeof said === 'string' && said !== '') return said === 'hello' ? said : 'failed';
    await sleep(50);
  }
  return 'silence';
}

/** What the browser's page shows of an address. */
export async function show(browser: RunningBrowser, url: string): Promise<string> {
  using cdp = await openCdp(browser.cdp);
  return await visit(cdp, await attachPage(cdp), url);
}

/** Makes all attempts from a page of the allowed site. */
export async function attemptAll(browser: RunningBrowser, targets: Targets): Promise<Attempts> {
  using cdp = await openCdp(browser.cdp);
  const session = await attachPage(cdp);
  const open = (host: string) => visit(cdp, session, `http://${host}:${targets.port}/`);
  const page = await open(targets.denied);
  const opened = await open(targets.allowed);
  if (opened !== 'hello') throw new Error(`the allowed site is not shown: ${opened}`);
  const found = await evaluate(cdp, session, `(${IN_PAGE})(${JSON.stringify(targets)})`);
  return { page, ...(JSON.parse(String(found)) as Omit<Attempts, 'page'>) };
}

/** What all of them are to end as, where no way leads out but the rules'. */
export const heldBack: Attempts = {
  page: 'failed',
  fetch: 'failed',
  webSocket: 'failed',
  redirect: 'failed',
  dnsTrick: 'failed',
  serviceWorker: 'failed',
  rawAddress: 'failed',
  ipv6: 'failed',
  metadata: 'failed',
  quic: 'failed',
  allowed: 'hello',
  allowedWebSocket: 'hello',
  allowedServiceWorker: 'hello',
  webRtc: [],
};

/** Lets a page gather addresses for WebRTC, whatever it shows. */
export async function gatherCandidates(browser: RunningBrowser, targets: Targets): Promise<void> {
  using cdp = await openCdp(browser.cdp);
  const session = await attachPage(cdp);
  const known = `const { address, port } = ${JSON.stringify(targets)};`;
  await evaluate(cdp, session, `(async () => { ${known} return (${GATHER})(); })()`);
}
