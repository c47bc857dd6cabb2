import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { UNREACHABLE } from '#src/kernel/domain/egress/networks.ts';

/**
 * The packet rules of the sessions' network, for nftables. They are in a separate table, which
 * neither Docker nor an administrator who flushes Docker's rules touches, and come before Docker's
 * rules in each hook.
 */
export type RulesFor = {
  /** The network's interface on the host. */
  bridge: string;
  /** Name servers that sessions may reach, at port 53 alone, even on private networks. */
  resolvers: readonly string[];
  /** False: without the bound on connections, for a kernel that cannot count them. */
  isBounded?: boolean;
  /** True: whatever a session sends that is no answer is refused. */
  isClosed?: boolean;
};

/**
 * Connections of one session at once, in the host's table of connections (262,144 by default on a
 * large host). A page needs far fewer: Chromium itself opens at most 256 sockets for HTTP and 255
 * for WebSockets.
 */
const CONNECTIONS_MAX = 1_024;
/** Addresses of a network that are counted at once. */
const COUNTED_MAX = 65_535;

/** Before Docker's own chains, which have priority 0. */
const PRIORITY = -10;

const COUNTED = 'counted';

export function tableOf(bridge: string): string {
  return bridge.replaceAll('-', '_');
}

/**
 * A script that replaces the rules as a whole. Refusals are immediate: a page fails instead of
 * hanging.
 */
export function rulesText(given: RulesFor): string {
  const { bridge, resolvers, isBounded = true, isClosed = false } = given;
  const table = `inet ${tableOf(bridge)}`;
  const dns = resolvers.map(
    (resolver) => `ip daddr ${resolver} meta l4proto { tcp, udp } th dport 53 accept`,
  );
  const begun = 'ct state established,related accept';
  return [
    `table ${table}`,
    `delete table ${table}`,
    `table ${table} {`,
    '  set unreachable {',
    `    type ipv4_addr; flags interval; elements = { ${UNREACHABLE.join(', ')} }`,
    '  }',
    `  set ${COUNTED} { type ipv4_addr; size ${COUNTED_MAX}; flags dynamic; }`,
    // Packets from sessions to the host itself.
    ...chain('input', [`iifname "${bridge}" jump to_host`]),
    ...rules('to_host', [begun, ...dns, ...refuse('')]),
    ...chain('forward', [
      `oifname "${bridge}" jump to_sessions`,
      `iifname "${bridge}" jump from_sessions`,
    ]),
    // Only published ports, and never from another session. Another network's check expects to be
    // refused: a drop would look like an address without a host.
    ...rules('to_sessions', [
      begun,
      `iifname "${bridge}" counter drop`,
      'ct status dnat accept',
      ...refuse(''),
    ]),
    ...rules('full', refuse('')),
    ...rules('from_sessions', [
      begun,
      ...(isClosed ? refuse('') : []),
      ...dns,
      ...refuse('meta nfproto ipv6'),
      ...refuse('ip daddr @unreachable'),
      // Not for packets that are refused anyway: the count itself is work.
      ...(isBounded
        ? [`add @${COUNTED} { ip saddr ct count over ${CONNECTIONS_MAX} } jump full`]
        : []),
    ]),
    '}',
    '',
  ].join('\n');
}

/** A script that lists the rules in force; it fails if there are none. */
export function listText(bridge: string): string {
  return `list table inet ${tableOf(bridge)}\n`;
}

/** The listed rules without the set of the counted sessions, which changes with each session. */
export function withoutCounted(listed: string): string {
  return listed.replace(/^\tset counted \{\n(?:\t\t.*\n)*\t\}\n/m, '');
}

/** A script that removes the rules. */
export function noRulesText(bridge: string): string {
  const table = `inet ${tableOf(bridge)}`;
  return `table ${table}\ndelete table ${table}\n`;
}

/** The name servers in a `resolv.conf`, except those on loopback, which the engine itself asks. */
export function resolversIn(resolvConf: string): string[] {
  return [...resolvConf.matchAll(/^\s*nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$/gm)]
    .map(([, address = '']) => address)
    .filter((address) => !address.startsWith('127.'));
}

/**
 * Refuses TCP by a reset: Linux treats an ICMP refusal during `connect` as temporary and tries
 * again a second later.
 */
function refuse(match: string): string[] {
  return [
    `${match} meta l4proto tcp counter reject with tcp reset`,
    `${match} counter reject with icmpx admin-prohibited`,
  ];
}

function chain(hook: string, lines: string[]): string[] {
  return rules(hook, [`type filter hook ${hook} priority ${PRIORITY}; policy accept;`, ...lines]);
}

function rules(name: string, lines: string[]): string[] {
  return [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), '  }'];
}

const NFT_MS = 10_000;

/** nft reads its script from stdin and lists rules without their counters. */
export const NFT_ARGS = ['-s', '-f', '-'] as const;

/**
 * Runs an nft script on this host, as a whole or not at all.
 * @returns nft's output; null where this process lacks the permission or nft is missing
 * @throws Error where nft rejects the script
 */
export async function runNft(script: string): Promise<string | null> {
  if (process.getuid?.() !== 0) return null;
  const child = spawn('nft', NFT_ARGS, { stdio: ['pipe', 'pipe', 'pipe'], timeout: NFT_MS });
  child.stdin.on('error', () => {}).end(script);
  try {
    const [listed, errors, [exitCode]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    if (exitCode === 0) return listed;
    // Root in a container without the capability NET_ADMIN.
    if (errors.includes('Operation not permitted')) return null;
    throw new Error(`nft: ${errors.trim().slice(-1000)}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
