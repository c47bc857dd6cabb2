/**
 * The names and labels by which this process, and the next one after a crash, finds its containers.
 * Labels cannot be added to a running container, so the session that it is assigned to becomes a
 * part of its name: `bss.<workload>`, then `bss.<workload>.<session>`. No id contains a dot.
 */

const OWNER = 'browser-session-service';
const SERVER = `${OWNER}.server`;
const WORKLOAD = `${OWNER}.workload`;
const PREFIX = 'bss';
/** How a browser is reached, on its container and on its image; absent: plain TCP. */
export const LINK = `${OWNER}.link`;
export const TLS_PSK = 'tls-psk';
/** On an image: how its browsers get their keys. */
export const KEYS = `${OWNER}.keys`;
export const STDIN = 'stdin';
/** On an image with a relay, through which a browser with egress rules reaches its proxy. */
export const EGRESS = `${OWNER}.egress`;
export const RELAY = 'relay';

/** On an image with a WebDriver, and so on its containers. */
export const WEBDRIVER = `${OWNER}.webdriver`;
export const CHROMEDRIVER = 'chromedriver';

/** On a network whose addresses the service may choose. */
export const ADDRESSES = `${OWNER}.addresses`;
export const CHOSEN = 'chosen';

/** The ports of CDP and of VNC inside a container. */
export const CDP_PORT = 9223;
export const VNC_PORT = 5900;
/** Where the provisioner connects to serve the browser's proxy, and where Chromium finds that. */
export const EGRESS_PORT = 9226;
export const RELAY_PORT = 3128;
/** WebDriver, through the link, and where that finds Chromium. */
export const WEBDRIVER_PORT = 9227;
export const CHROMIUM_PORT = 9222;

export function labelsOf(serverId: string, workloadId: string): Record<string, string> {
  return { owner: OWNER, [SERVER]: serverId, [WORKLOAD]: workloadId, [LINK]: TLS_PSK };
}

/** The labels of a container or a network of this service that is no browser. */
export function ownLabel(): Record<string, string> {
  return { owner: OWNER };
}

export function nameOf(workloadId: string, sessionId?: string): string {
  return [PREFIX, workloadId, ...(sessionId === undefined ? [] : [sessionId])].join('.');
}

/** The ids in a container's name; `sessionId` is null before it is assigned. */
export function parseName(name: string): { workloadId: string; sessionId: string | null } {
  const [, workloadId = '', sessionId = null] = name.split('.');
  return { workloadId, sessionId };
}

/** The engine's filter for the browsers of a server, or for one of them. */
export function filterFor(serverId: string, workloadId?: string): { label: string[] } {
  const one = workloadId === undefined ? [] : [`${WORKLOAD}=${workloadId}`];
  return { label: [`owner=${OWNER}`, `${SERVER}=${serverId}`, ...one] };
}

/** The engine's filter for the browsers of all servers. */
export function labelled(): { label: string[] } {
  return { label: [`owner=${OWNER}`, SERVER] };
}

/** The server in a container's labels. */
export function serverIdOf(labels: Record<string, string>): string | null {
  return labels[SERVER] ?? null;
}

/** The workload in a container's labels, as the engine lists them or sends them with an event. */
export function workloadIdOf(labels: Record<string, string>): string | null {
  return labels[WORKLOAD] ?? null;
}
