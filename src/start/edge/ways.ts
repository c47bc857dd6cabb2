import { SENDS_NOTHING_MS, TAKES_NOTHING_MS } from '#src/roles/api/files/paced-body.ts';
import { PLACE_MS } from '#src/features/files/routes/upload.ts';
import { STOP_WITHIN_MS } from '#src/features/pages/one-call.ts';
import { RETRY_MS } from '#src/roles/api/routes/operator/dead-letters.ts';
import { SAVED_WITHIN_MS } from '#src/features/profiles/routes/save-profile.post.ts';
import { TIMEOUT_MAX_MS } from '#src/features/pages/routes/page-call.ts';
import { COMMAND_MS } from '#src/features/webdriver/drivers.ts';
import { UPLOAD_BYTES_MAX } from '#src/browsers/extensions/read-extension.ts';
import { SLOWEST } from '#src/kernel/foreign/pace.ts';
import { BODY_BYTES_MAX as COMMAND_BYTES_MAX } from '#src/roles/gateway/webdriver/body.ts';

/**
 * What a proxy in front of the service has to let pass: the bodies and times that the API and the
 * gateway bound themselves, so that those refuse, in the API's form, and not the proxy.
 * deploy/nginx.conf and the chart's Ingress are written from this table (test/integration/deploy).
 *
 * Two rules hold for all of it. A proxy keeps nothing: bodies and answers are passed on as they
 * come, so that the bounds of slow clients are the service's, and no disk of the proxy fills. And
 * what was sent to one process is sent to another only if its method is one of `REPEATED`.
 */
export type Way = {
  name: string;
  to: 'api' | 'gateway';
  /** Of the path; null: all others. The first that matches counts. */
  path: RegExp | null;
  /** The most bytes that a proxy lets pass; null: any, the service knows the limit. */
  bodyBytesMax: number | null;
  /** The longest silence of a client in the middle of its body. */
  bodySilenceMs: number;
  /** The longest silence of the service before its answer, and in the middle of it. */
  answerSilenceMs: number;
};

/** Methods that change nothing. */
export const REPEATED = ['GET', 'HEAD'] as const;

/** By how much a proxy is more patient than the service. */
const MARGIN_MS = 15_000;
const MIB = 1024 * 1024;
/** More than the 64 KiB of the API's usual bodies. */
const BODY_BYTES_MAX = MIB;
const DAY_MS = 86_400_000;

/** The longest silence of a client that reads an answer. */
export const readerSilenceMs = TAKES_NOTHING_MS + MARGIN_MS;

const usual = {
  to: 'api',
  bodyBytesMax: BODY_BYTES_MAX,
  // The API gives a whole request 10 s.
  bodySilenceMs: 10_000,
  // Event streams and MCP send a comment every 15 s; operators wait the longest.
  answerSilenceMs: RETRY_MS + MARGIN_MS,
} as const;

export const ways: readonly Way[] = [
  {
    ...usual,
    name: 'sockets',
    to: 'gateway',
    path: /^\/(?:devtools|json|vnc|viewer)(?:\/|$)/,
    // The gateway limits sockets, and pings them.
    answerSilenceMs: DAY_MS,
  },
  {
    ...usual,
    name: 'files',
    path: /^\/api\/sessions\/[^/]+\/files\/[^/]+$/,
    // FILES_FILE_MAX.
    bodyBytesMax: null,
    bodySilenceMs: SENDS_NOTHING_MS + MARGIN_MS,
    answerSilenceMs: PLACE_MS + MARGIN_MS,
  },
  {
    ...usual,
    name: 'extensions',
    path: /^\/api\/extensions$/,
    bodyBytesMax: UPLOAD_BYTES_MAX + MIB,
    bodySilenceMs: SLOWEST.creditMs + MARGIN_MS,
  },
  {
    ...usual,
    name: 'waits',
    path: /^\/api\/(?:screenshot|pdf|content|sessions\/[^/]+\/profile\/save)$/,
    answerSilenceMs: Math.max(TIMEOUT_MAX_MS + STOP_WITHIN_MS, SAVED_WITHIN_MS) + MARGIN_MS,
  },
  {
    ...usual,
    name: 'webdriver',
    path: /^\/wd\/hub\//,
    bodyBytesMax: COMMAND_BYTES_MAX + MIB,
    // While a person holds the session nothing is read of a body.
    bodySilenceMs: COMMAND_MS + MARGIN_MS,
    answerSilenceMs: COMMAND_MS + MARGIN_MS,
  },
  { ...usual, name: 'calls', path: null },
];

/** The way of a path, without its query. */
export function wayOf(path: string): Way {
  const found = ways.find((way) => way.path === null || way.path.test(path));
  if (found === undefined) throw new Error(`no way of ${path}`);
  return found;
}
