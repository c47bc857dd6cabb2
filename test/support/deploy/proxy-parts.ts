import { readerSilenceMs, REPEATED, ways, type Way } from '#src/start/edge/ways.ts';

/** nginx sends these to another server only where it has sent nothing of them. */
const SENT_ONCE_BY_NGINX = ['POST', 'LOCK', 'PATCH'];
const MIB = 1024 * 1024;

const size = (bytes: number) => (bytes % MIB === 0 ? `${bytes / MIB}m` : `${bytes}`);
const seconds = (ms: number) => `${Math.ceil(ms / 1000)}s`;

/** The parts of deploy/nginx.conf. */
export function nginxParts(): Record<string, string[]> {
  return {
    'slow readers': [`send_timeout ${seconds(readerSilenceMs)};`],
    'sent once': [
      'map $request_method $sent_once {',
      '  default 1;',
      ...[...REPEATED, ...SENT_ONCE_BY_NGINX].map((method) => `  ${method} '';`),
      '}',
    ],
    ways: ways.flatMap(locations),
  };
}

function locations(way: Way): string[] {
  const { name, to, path, bodyBytesMax, bodySilenceMs, answerSilenceMs } = way;
  const bounds = [
    `client_max_body_size ${size(bodyBytesMax ?? 0)};`,
    `client_body_timeout ${seconds(bodySilenceMs)};`,
    `proxy_read_timeout ${seconds(answerSilenceMs)};`,
    `proxy_send_timeout ${seconds(answerSilenceMs)};`,
    `proxy_pass $${to};`,
  ];
  const once = [`set $once @${name};`, 'if ($sent_once) { return 418; }'];
  const block = (of: string, lines: string[]) => [
    `location ${of} {`,
    ...lines.map((line) => `  ${line}`),
    '}',
  ];
  const pattern =
    path === null ? '/' : `~ ${path.source.replaceAll('\\/', '/').replaceAll('(?:', '(')}`;
  return [
    ...block(pattern, [...once, ...bounds]),
    ...block(`@${name}`, ['proxy_next_upstream off;', ...bounds]),
  ];
}

/** The part of the chart's Ingress: one for all ways, so it has the most that one of them needs. */
export function ingressParts(): Record<string, string[]> {
  const most = Math.max(...ways.map(({ answerSilenceMs }) => answerSilenceMs)) / 1000;
  const bodies = ways.map(({ bodyBytesMax }) => bodyBytesMax);
  const body = bodies.includes(null) ? 0 : Math.max(...bodies.map(Number));
  const settings = {
    'proxy-read-timeout': most,
    'proxy-send-timeout': most,
    'proxy-body-size': body,
    'proxy-buffering': 'off',
    'proxy-request-buffering': 'off',
    // It knows no methods.
    'proxy-next-upstream': 'off',
  };
  return {
    ways: Object.entries(settings).map(
      ([name, value]) => `nginx.ingress.kubernetes.io/${name}: '${value}'`,
    ),
  };
}
