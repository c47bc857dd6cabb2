import { pino, type Logger } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** What never reaches a log line, wherever it stands in an object. */
const SECRET_FIELDS = [
  'authorization',
  'apiKey',
  'api_key',
  'masterKey',
  'password',
  'vncPassword',
  'vnc_password',
  'ticket',
  'cdp_url',
  'vnc_url',
];

/** JSON lines on stdout; readable ones where stdout is a terminal. */
export function createLog(level: string): Logger {
  const redact = {
    paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    censor: '[redacted]',
  };
  const base = { service: 'browser-session-service' };
  if (!process.stdout.isTTY) return pino({ level, redact, base });
  const options = { ignore: 'pid,hostname,service', translateTime: 'SYS:HH:MM:ss.l' };
  return pino({ level, redact, base, transport: { target: 'pino-pretty', options } });
}
