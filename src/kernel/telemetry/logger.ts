import { pino, type Logger as PinoLogger } from 'pino';

export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** Fields that are redacted at the top level and in objects up to two levels deep. */
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

/** Logs JSON lines to stdout; readable lines if stdout is a terminal. */
export function createLogger(level: string): PinoLogger {
  const redact = {
    paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    censor: '[redacted]',
  };
  const base = { service: 'browser-session-service' };
  if (!process.stdout.isTTY) return pino({ level, redact, base });
  const options = { ignore: 'pid,hostname,service', translateTime: 'SYS:HH:MM:ss.l' };
  return pino({ level, redact, base, transport: { target: 'pino-pretty', options } });
}
