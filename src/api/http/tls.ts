import { Server as TlsServer } from 'node:https';
import type { FastifyInstance } from 'fastify';

/** A key and its certificate with the chain, both PEM text. */
export type Certificate = { key: string; cert: string };

/** How requests come in. */
export type Incoming = {
  /** Left out: plain HTTP. */
  certificate?: Certificate;
  /** Addresses and networks whose X-Forwarded-* headers are believed; none: nobody's. */
  trustedProxies?: readonly string[];
};

/** The same for Fastify: who a request is from is then `request.ip`, wherever it is asked. */
export function incomingOptions({ certificate, trustedProxies = [] }: Incoming, http: object) {
  const trustProxy = trustedProxies.length === 0 ? false : [...trustedProxies];
  // Only one of them counts: what is said of HTTP holds for HTTPS as well.
  return certificate === undefined
    ? { trustProxy }
    : { trustProxy, https: { ...http, ...certificate } };
}

/** From the next handshake on; connections that are open go on. Nothing where there is no TLS. */
export function setCertificate({ server }: FastifyInstance, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext(certificate);
}
