/**
 * The packet rules of the sessions' network, for nftables. Pure. They are a table of their own,
 * which Docker's rules and whoever flushes those leave alone, and stand before them in each hook.
 */
export type RulesFor = {
  /** The network's interface on the host. */
  bridge: string;
  /** Name servers that sessions may ask, at port 53 alone, wherever they are. */
  resolvers: readonly string[];
};

/**
 * Where no session gets: the host's own networks and all that is not the public internet
 * (RFC 6890): "this" network, private, shared by carriers, loopback, link-local with the clouds'
 * metadata services, protocol assignments, private relays, benchmarks, multicast, reserved.
 */
export const UNREACHABLE = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** Below Docker's own chains, which are at 0. */
const PRIORITY = -10;

export function tableOf(bridge: string): string {
  return bridge.replaceAll('-', '_');
}

/**
 * A script that puts the rules in force as a whole, whatever was there before. Refusals are told
 * to the browser at once: a page fails instead of hanging.
 */
export function rulesText({ bridge, resolvers }: RulesFor): string {
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
    // What comes from sessions to the host itself.
    ...chain('input', [`iifname "${bridge}" jump to_host`]),
    ...rules('to_host', [begun, ...dns, ...refuse('')]),
    ...chain('forward', [
      `oifname "${bridge}" jump to_sessions`,
      `iifname "${bridge}" jump from_sessions`,
    ]),
    // Only what was published, and never from another session.
    ...rules('to_sessions', [
      begun,
      `iifname != "${bridge}" ct status dnat accept`,
      'counter drop',
    ]),
    ...rules('from_sessions', [
      begun,
      ...dns,
      ...refuse('meta nfproto ipv6'),
      ...refuse('ip daddr @unreachable'),
    ]),
    '}',
    '',
  ].join('\n');
}

/** A script that shows the rules that are in force; it fails where there are none. */
export function listText(bridge: string): string {
  return `list table inet ${tableOf(bridge)}\n`;
}

/** A script that takes the rules away. */
export function noRulesText(bridge: string): string {
  const table = `inet ${tableOf(bridge)}`;
  return `table ${table}\ndelete table ${table}\n`;
}

/** Name servers that a `resolv.conf` names; those on loopback are asked by the engine itself. */
export function resolversIn(resolvConf: string): string[] {
  return [...resolvConf.matchAll(/^\s*nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$/gm)]
    .map(([, address = '']) => address)
    .filter((address) => !address.startsWith('127.'));
}

/**
 * A connection is reset: Linux takes an ICMP refusal for a passing trouble while its own `connect`
 * is still under way, and tries again a second later.
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
