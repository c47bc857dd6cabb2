import { readFileSync } from 'node:fs';
import { masterKeyTexts } from '#src/kernel/master-keys.ts';
import { BadConfig, text, type Form } from './parse.ts';

/** Variables whose value is a secret; each may be in the file that `<name>_FILE` names. */
export const secretNames = [
  'MASTER_KEY',
  'DEV_API_KEY',
  'JWT_SECRET',
  'NATS_PASSWORD',
  'NATS_ISSUER_SEED',
  'REDIS_PASSWORD',
  'METRICS_TOKEN',
  'OPERATOR_TOKEN',
] as const;
type SecretName = (typeof secretNames)[number];

export const secretFileVariables = Object.fromEntries(
  secretNames.map((name) => [
    `${name}_FILE`,
    { form: text, fallback: '', meaning: `file that holds ${name}` },
  ]),
) as Record<`${SecretName}_FILE`, { form: Form<string>; fallback: ''; meaning: string }>;

type Env = Record<string, string | undefined>;

/**
 * The environment plus the secrets from files, trimmed.
 * @throws BadConfig if a secret is set twice, or its file cannot be read or is empty
 */
export function withSecretFiles(env: Env): Env {
  const found = { ...env };
  for (const name of secretNames) {
    const path = env[`${name}_FILE`]?.trim() ?? '';
    if (path === '') continue;
    if ((env[name]?.trim() ?? '') !== '')
      throw new BadConfig(`${name}_FILE: not together with ${name}; set one of them`);
    found[name] = readText(`${name}_FILE`, path).trim();
    if (found[name] === '') throw new BadConfig(`${name}_FILE: ${path} is empty`);
  }
  return found;
}

/** @throws BadConfig naming the variable and why its file cannot be read */
export function readText(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new BadConfig(`${name}: ${path} cannot be read (${code})`);
  }
}

/** The path of a file that can be read. */
export const readableFile: Form<string> = {
  says: '',
  parse(given, name) {
    readText(name, given);
    return given;
  },
};

/** Minimum length of each secret in production. */
const LENGTH_MIN: Record<SecretName, number> = {
  MASTER_KEY: 32,
  // `bss_<organization>_` and 96 bits.
  DEV_API_KEY: 24,
  JWT_SECRET: 32,
  NATS_PASSWORD: 8,
  NATS_ISSUER_SEED: 58,
  REDIS_PASSWORD: 8,
  METRICS_TOKEN: 16,
  OPERATOR_TOKEN: 16,
};

/** Words of placeholders and of common passwords. */
const PLACEHOLDER = /change.?me|password|passw0rd|secret|example|default|insecure|qwerty|12345678/i;
/** A repeated unit of up to 16 characters. */
const REPETITION = /^(.{1,16}?)\1+.{0,15}$/s;

/**
 * Why the secret might be guessed; null if it looks random. Random secrets pass: 32 hex digits have
 * fewer than 8 different ones once in some 25 million times.
 */
export function weaknessOf(name: SecretName, secret: string): string | null {
  const parts = name === 'MASTER_KEY' ? masterKeyTexts(secret) : [secret];
  return parts.map((part) => weaknessOfOne(name, part)).find((one) => one !== null) ?? null;
}

function weaknessOfOne(name: SecretName, secret: string): string | null {
  const lengthMin = LENGTH_MIN[name];
  if (secret.length < lengthMin)
    return `it has ${secret.length} characters; ${lengthMin} are needed`;
  if (PLACEHOLDER.test(secret)) return 'it contains a placeholder word';
  if (REPETITION.test(secret)) return 'it repeats the same few characters';
  const different = new Set(secret).size;
  const needed = Math.min(8, Math.ceil(lengthMin / 2));
  return different < needed ? `it has only ${different} different characters` : null;
}

/**
 * Whether this is a production installation: NODE_ENV=production, or NATS is on another machine.
 */
export function isProduction(env: Env): boolean {
  if (env['NODE_ENV'] === 'production') return true;
  const addresses = (env['NATS_URL'] ?? '').split(',').map((one) => URL.parse(one.trim()));
  return addresses.some((address) => address !== null && !isLoopback(address.hostname));
}

/** `host` is an address or, as in a URL, a bracketed one. */
export function isLoopback(host: string): boolean {
  return ['', 'localhost', '::1', '[::1]'].includes(host) || host.startsWith('127.');
}

/** @throws BadConfig in production, for the first secret that might be guessed */
export function refuseWeakSecrets(env: Env): void {
  if (!isProduction(env)) return;
  for (const name of secretNames) {
    const secret = env[name]?.trim() ?? '';
    const weakness = secret === '' ? null : weaknessOf(name, secret);
    if (weakness !== null)
      throw new BadConfig(
        `${name}: too weak for production: ${weakness}. openssl rand -base64 36 makes one`,
      );
  }
}
