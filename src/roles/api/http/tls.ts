import { Server as TlsServer } from 'node:https';
import type { FastifyInstance } from 'fastify';

/** A key and its certificate with the chain, both PEM text. */
export type Certificate = { key: string; cert: string };

/** How clients reach the service: with TLS or without, through proxies or directly. */
export type Incoming = {
  /** Left out: plain HTTP. */
  certificate?: Certificate;
  /**
   * Addresses and networks of proxies whose X-Forwarded-* headers are trusted; none: no proxy's
   * are.
   */
  trustedProxies?: readonly string[];
};

/** Fastify uses one of the two: with TLS the HTTP options are repeated under `https`. */
export function incomingOptions({ certificate, trustedProxies = [] }: Incoming, http: object) {
  const trustProxy = trustedProxies.length === 0 ? false : [...trustedProxies];
  // Fastify's types allow only one of the two; the HTTP options hold for HTTPS as well.
  return certificate === undefined
    ? { trustProxy }
    : { trustProxy, https: { ...http, ...certificate } };
}

/** Takes effect at the next handshake; open connections continue. Without TLS it has no effect. */
export function setCertificate({ server }: FastifyInstance, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext(certificate);
}
