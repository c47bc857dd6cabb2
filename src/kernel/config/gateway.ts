import { BadConfig, optional, port, text, url, type Form, type Values, variable } from './parse.ts';

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

/** At most so many sessions have a port; each is a listener. */
const DEBUGGER_PORTS_MAX = 1_000;
const PORT_MAX = 65_535;

const portRange: Form<number[]> = {
  says: '',
  parse(given, name) {
    const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(given) ?? [];
    const [first, last] = [Number(from), Number(to)];
    const count = last - first + 1;
    if (!(first >= 1 && last <= PORT_MAX && count >= 1 && count <= DEBUGGER_PORTS_MAX))
      throw new BadConfig(`${name}: ${given} is no range of at most 1000 ports, as 9300-9399`);
    return Array.from({ length: count }, (_, n) => first + n);
  },
};

export const gatewayVariables = {
  GATEWAY_PORT: variable(port, '8081', 'port of CDP and VNC sockets without TLS'),
  GATEWAY_TLS_PORT: variable(port, '8443', 'port of CDP and VNC sockets with TLS'),
  PUBLIC_GATEWAY_WS_URL: variable(
    optional(url('ws:', 'wss:')),
    '',
    'ws:// or wss:// address of the gateway in cdp_url; empty: from HOST and ' +
      'GATEWAY_PORT, or wss:// with GATEWAY_TLS_PORT if TLS_CERT_FILE is set',
  ),
  PUBLIC_GATEWAY_WSS_URL: variable(
    optional(url('wss:')),
    '',
    'wss:// address of the gateway in vnc_url; empty: from HOST and GATEWAY_TLS_PORT',
  ),
  GATEWAY_URL: variable(
    optional(url('http:', 'https:')),
    '',
    'http:// or https:// address at which API processes reach a gateway; empty: this ' +
      'process if it has the role gateway, else PUBLIC_GATEWAY_WS_URL',
  ),
  DEBUGGER_PORTS: variable(
    optional(portRange),
    '',
    'ports that sessions of this gateway may have, as 9300-9399; whatever reaches one ' +
      'drives its browser without a ticket; empty: none',
  ),
  DEBUGGER_HOST: variable(text, '127.0.0.1', 'address that DEBUGGER_PORTS are bound to'),
  PUBLIC_DEBUGGER_HOST: variable(
    text,
    '',
    'host in debugger_address; empty: DEBUGGER_HOST, or 127.0.0.1 for every address',
  ),
} as const;
type Given = Values<typeof gatewayVariables>;

/**
 * @param hasTls there is a certificate of the operator
 * @param isHere this process has the role
 * @throws BadConfig naming the variable that is wrong
 */
export function readGateway(
  values: Given & { HOST: string },
  { hasTls, isHere }: { hasTls: boolean; isHere: boolean },
): GatewayConfig {
  const { GATEWAY_PORT: plainPort, GATEWAY_TLS_PORT: tlsPort } = values;
  // If the process listens on every address, the public name is unknown here: use loopback.
  const host = isEverywhere(values.HOST) ? '127.0.0.1' : values.HOST;
  const name = host.includes(':') ? `[${host}]` : host;
  const secure = `wss://${name}:${tlsPort}`;
  // A session's address gives access to its browser: use TLS wherever there is a certificate.
  const usual = hasTls ? secure : `ws://${name}:${plainPort}`;
  const publicWsUrl = values.PUBLIC_GATEWAY_WS_URL ?? usual;
  // Inside a process plain HTTP is as safe, and its certificate need not be for this name.
  const internal = isHere ? `http://${name}:${plainPort}` : publicWsUrl.replace(/^ws/, 'http');
  return {
    port: plainPort,
    tlsPort,
    publicWsUrl,
    publicWssUrl: values.PUBLIC_GATEWAY_WSS_URL ?? secure,
    internalUrl: values.GATEWAY_URL ?? internal,
    debuggerPorts: readDebuggerPorts(values),
  };
}

function readDebuggerPorts(values: Given): GatewayConfig['debuggerPorts'] {
  const { DEBUGGER_PORTS: ports, DEBUGGER_HOST: bind } = values;
  const host = values.PUBLIC_DEBUGGER_HOST || (isEverywhere(bind) ? '127.0.0.1' : bind);
  return ports === null ? null : { ports, bind, host };
}

function isEverywhere(address: string): boolean {
  return ['0.0.0.0', '::'].includes(address);
}
