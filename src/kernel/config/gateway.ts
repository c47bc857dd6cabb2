import { BadConfig, integer, url, type Read } from './parse.ts';

/** The gateway's ports, and its addresses as others use them. */
export type GatewayConfig = {
  port: number;
  tlsPort: number;
  /** Addresses of the gateway as clients get them. */
  publicWsUrl: string;
  publicWssUrl: string;
  /** `http://` or `https://` address by which an API process asks a gateway. */
  internalUrl: string;
  /** Ports that sessions may have of their own; null: none. */
  debuggerPorts: { ports: readonly number[]; bind: string; host: string } | null;
};

export const gatewayVariables = {
  GATEWAY_PORT: { fallback: '8081', meaning: 'port of CDP and VNC sockets without TLS' },
  GATEWAY_TLS_PORT: { fallback: '8443', meaning: 'port of CDP and VNC sockets with TLS' },
  PUBLIC_GATEWAY_WS_URL: {
    fallback: '',
    meaning:
      'ws:// or wss:// address of the gateway in cdp_url; empty: from HOST and ' +
      'GATEWAY_PORT, or wss:// with GATEWAY_TLS_PORT if TLS_CERT_FILE is set',
  },
  PUBLIC_GATEWAY_WSS_URL: {
    fallback: '',
    meaning: 'wss:// address of the gateway in vnc_url; empty: from HOST and GATEWAY_TLS_PORT',
  },
  GATEWAY_URL: {
    fallback: '',
    meaning:
      'http:// or https:// address at which API processes reach a gateway; empty: this ' +
      'process if it has the role gateway, else PUBLIC_GATEWAY_WS_URL',
  },
  DEBUGGER_PORTS: {
    fallback: '',
    meaning:
      'ports that sessions of this gateway may have, as 9300-9399; whatever reaches one ' +
      'drives its browser without a ticket; empty: none',
  },
  DEBUGGER_HOST: { fallback: '127.0.0.1', meaning: 'address that DEBUGGER_PORTS are bound to' },
  PUBLIC_DEBUGGER_HOST: {
    fallback: '',
    meaning: 'host in debugger_address; empty: DEBUGGER_HOST, or 127.0.0.1 for every address',
  },
} as const;
type Name = keyof typeof gatewayVariables;

/** At most so many sessions have a port; each is a listener. */
const DEBUGGER_PORTS_MAX = 1_000;
const PORT_MAX = 65_535;

/**
 * @param hasTls there is a certificate of the operator
 * @param isHere this process has the role
 * @throws BadConfig naming the variable that is wrong
 */
export function readGateway(
  read: Read<Name | 'HOST'>,
  { hasTls, isHere }: { hasTls: boolean; isHere: boolean },
): GatewayConfig {
  const port = integer('GATEWAY_PORT', read, 1, 65_535);
  const tlsPort = integer('GATEWAY_TLS_PORT', read, 1, 65_535);
  // If the process listens on every address, the public name is unknown here: use loopback.
  const host = isEverywhere(read('HOST')) ? '127.0.0.1' : read('HOST');
  const name = host.includes(':') ? `[${host}]` : host;
  const secure = `wss://${name}:${tlsPort}`;
  // A session's address gives access to its browser: use TLS wherever there is a certificate.
  const usual = hasTls ? secure : `ws://${name}:${port}`;
  const publicWsUrl = url('PUBLIC_GATEWAY_WS_URL', read, ['ws:', 'wss:']) ?? usual;
  // Inside a process plain HTTP is as safe, and its certificate need not be for this name.
  const internal = isHere ? `http://${name}:${port}` : publicWsUrl.replace(/^ws/, 'http');
  return {
    port,
    tlsPort,
    publicWsUrl,
    publicWssUrl: url('PUBLIC_GATEWAY_WSS_URL', read, ['wss:']) ?? secure,
    internalUrl: url('GATEWAY_URL', read, ['http:', 'https:']) ?? internal,
    debuggerPorts: readDebuggerPorts(read),
  };
}

function readDebuggerPorts(read: Read<Name>): GatewayConfig['debuggerPorts'] {
  const text = read('DEBUGGER_PORTS');
  if (text === '') return null;
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  const [first, last] = [Number(from), Number(to)];
  const count = last - first + 1;
  if (!(first >= 1 && last <= PORT_MAX && count >= 1 && count <= DEBUGGER_PORTS_MAX))
    throw new BadConfig(`DEBUGGER_PORTS: ${text} is no range of at most 1000 ports, as 9300-9399`);
  const bind = read('DEBUGGER_HOST');
  const host = read('PUBLIC_DEBUGGER_HOST') || (isEverywhere(bind) ? '127.0.0.1' : bind);
  return { ports: Array.from({ length: count }, (_, n) => first + n), bind, host };
}

function isEverywhere(address: string): boolean {
  return ['0.0.0.0', '::'].includes(address);
}
