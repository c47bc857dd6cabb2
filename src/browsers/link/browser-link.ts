import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { connect as connectTls } from 'node:tls';

/**
 * The link between the service and a browser's sockets (CDP and VNC): TLS 1.3 with a key of that
 * browser alone, or plain TCP on loopback.
 */

/** Where a browser's socket is, and its key. */
export type BrowserAddress = {
  host: string;
  port: number;
  /**
   * The key of its workload; absent: plain TCP. A KeyObject prints and serializes without its
   * bytes.
   */
  linkKey?: KeyObject | undefined;
};

/** Where the WebDriver beside a browser is. */
export type DriverAddress = BrowserAddress & {
  /** All its paths begin with it. */
  path: string;
  /** Where it finds the browser, on the loopback that both have. */
  cdpPort: number;
};

/** How a recorded workload is reached; absent: plain TCP. */
export type RecordedLink = 'tls-psk';

/** Idle time before TCP sends keep-alive probes: ten of them, a second apart. */
export const KEEP_ALIVE_MS = 15_000;
const KEY_BYTES = 32;
const DRIVER_PATH_BYTES = 16;
/** The same as in deploy/browser/entrypoint.sh; each browser has its own key, not its own name. */
const IDENTITY = 'gateway';
/** A key from outside of TLS 1.3 goes with SHA-256 alone. */
const CIPHER = 'TLS_AES_128_GCM_SHA256';

/** Derives the key of a workload's link from the master key, at every use; never stored. */
export type LinkKeys = (workloadId: string) => KeyObject;

/** @throws RangeError if the master key is shorter than 16 bytes */
export function createLinkKeys(masterKey: Uint8Array): LinkKeys {
  if (masterKey.length < 16) throw new RangeError('the master key is shorter than 16 bytes');
  return (workloadId) =>
    createSecretKey(
      Buffer.from(hkdfSync('sha256', masterKey, workloadId, 'browser link', KEY_BYTES)),
    );
}

/**
 * Where the driver beside a workload's browser takes commands: `/` and 32 hexadecimal digits, which
 * no page in that browser can guess.
 */
export function driverPath(key: KeyObject): string {
  const secret = hkdfSync('sha256', key, '', 'webdriver path', DRIVER_PATH_BYTES);
  return `/${Buffer.from(secret).toString('hex')}`;
}

/** The key as a browser's container is given it: 64 hexadecimal digits. */
export function linkKeyText(key: KeyObject): string {
  return key.export().toString('hex');
}

/** The addresses of a recorded workload's sockets, with its key if it is reached through TLS. */
export function addressesOf<Path extends object>(
  workload: {
    workloadId: string;
    link?: RecordedLink;
    cdp: { host: string; port: number } & Path;
    vnc: { host: string; port: number };
    webdriver?: { host: string; port: number; cdpPort: number };
  },
  keyOf: LinkKeys,
): { cdp: BrowserAddress & Path; vnc: BrowserAddress; webdriver?: DriverAddress } {
  const { workloadId, link, cdp, vnc, webdriver } = workload;
  const linkKey = keyOf(workloadId);
  const key = link === undefined ? {} : { linkKey };
  const addresses = { cdp: { ...cdp, ...key }, vnc: { ...vnc, ...key } };
  if (webdriver === undefined) return addresses;
  return { ...addresses, webdriver: { ...webdriver, ...key, path: driverPath(linkKey) } };
}

/**
 * Opens a connection to a browser. `onReady` is called once bytes can flow: after the handshake,
 * in which both sides have proved the key. Bytes that are written before are sent then. A failure
 * is the socket's `error`, then `close`.
 */
export function connectToBrowser(
  address: BrowserAddress,
  { signal, onReady }: { signal?: AbortSignal; onReady?: () => void } = {},
): Socket {
  const socket =
    address.linkKey === undefined ? openTcp(address) : openTls(address, address.linkKey);
  if (signal !== undefined) {
    // events.once with the same signal has no listener any more when it aborts, and an error
    // without a listener would end the process.
    socket.on('error', () => undefined);
    addAbortSignal(signal, socket);
  }
  if (onReady !== undefined)
    socket.once(address.linkKey === undefined ? 'connect' : 'secureConnect', onReady);
  return socket;
}

function openTcp({ host, port }: BrowserAddress): Socket {
  return connect({
    host,
    port,
    noDelay: true, // small messages must not wait for the ACK of an earlier one
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
}

function openTls(address: BrowserAddress, linkKey: KeyObject): Socket {
  return connectTls({
    socket: openTcp(address),
    pskCallback: () => ({ psk: linkKey.export(), identity: IDENTITY }),
    ciphers: CIPHER,
    minVersion: 'TLSv1.3',
    // Called only where the other side has shown a certificate in place of the key.
    checkServerIdentity: () => new Error('the browser did not prove its key'),
  });
}
