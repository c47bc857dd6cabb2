import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import { readText } from './secrets.ts';
import { BadConfig, list, text, type Form, type Values, variable } from './parse.ts';

/** Files of a certificate and its key, PEM. */
export type CertificateFiles = { certFile: string; keyFile: string };

/** TLS and proxies of incoming connections. */
export type IncomingConfig = {
  /** null: the API uses plain HTTP, and the gateway's TLS port a self-signed certificate. */
  certificate: CertificateFiles | null;
  /** Addresses and networks (`10.0.0.0/8`) whose X-Forwarded-* headers are trusted. */
  trustedProxies: readonly string[];
};

const network: Form<string> = {
  says: '',
  parse(given, name) {
    const [address = '', bits, ...more] = given.split('/');
    const most = isIPv6(address) ? 128 : 32;
    const isWidth = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
    if (isIP(address) === 0 || !isWidth || more.length > 0)
      throw new BadConfig(`${name}: ${given} is neither an address nor a network`);
    if (bits === '0') throw new BadConfig(`${name}: ${given} would trust every address`);
    return given;
  },
};

export const incomingVariables = {
  TLS_CERT_FILE: variable(
    text,
    '',
    'certificate of API and gateway, PEM, with its chain; empty: the API speaks plain HTTP',
  ),
  TLS_KEY_FILE: variable(
    text,
    '',
    'key of TLS_CERT_FILE, PEM; both are read again when they change',
  ),
  TRUSTED_PROXIES: variable(
    list(network),
    '',
    'proxies whose X-Forwarded-* headers count: addresses, networks as 10.0.0.0/8; empty: none',
  ),
} as const;

/** @throws BadConfig naming the variable that is wrong */
export function readIncoming(values: Values<typeof incomingVariables>): IncomingConfig {
  return {
    certificate: readPair('TLS_CERT_FILE', 'TLS_KEY_FILE', values),
    trustedProxies: values.TRUSTED_PROXIES,
  };
}

/** @throws BadConfig if only one is set, a file cannot be read, or the key does not match */
export function readPair<Name extends string>(
  certName: Name,
  keyName: Name,
  values: Record<Name, string>,
): CertificateFiles | null {
  const [certFile, keyFile] = [values[certName], values[keyName]];
  if (certFile === '' && keyFile === '') return null;
  if (certFile === '') throw new BadConfig(`${certName}: needed beside ${keyName}`);
  if (keyFile === '') throw new BadConfig(`${keyName}: needed beside ${certName}`);
  const cert = readCertificate(certName, certFile);
  const key = readText(keyName, keyFile);
  let fits: boolean;
  try {
    fits = cert.checkPrivateKey(createPrivateKey(key));
  } catch {
    throw new BadConfig(`${keyName}: ${keyFile} has no private key in PEM without a passphrase`);
  }
  if (!fits) throw new BadConfig(`${keyName}: ${keyFile} is not the key of ${certFile}`);
  return { certFile, keyFile };
}

/** @throws BadConfig if the file cannot be read or has no certificate */
export function readCertificate(name: string, path: string): X509Certificate {
  const pem = readText(name, path);
  try {
    return new X509Certificate(pem);
  } catch {
    throw new BadConfig(`${name}: ${path} has no certificate in PEM`);
  }
}
