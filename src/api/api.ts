import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '#src/telemetry/logger.ts';
import type { Metrics } from '#src/telemetry/metrics.ts';
import type { Tracer } from '#src/telemetry/tracer.ts';
import type { Gatekeeper } from './http/admission.ts';
import type { ApiParts } from './dependencies.ts';
import { setCertificate, type Certificate, type Incoming } from './http/tls.ts';
import { apiRoutes } from './routes.ts';
import { buildServer } from './http/server.ts';

/** Requests under way are given this long when the service ends; then their connections are cut. */
const DRAIN_MS = 3_000;

/**
 * Listens for requests. Disposing takes no new connection, lets open requests finish within 3 s,
 * and ends. @throws where the port is taken (code EADDRINUSE)
 */
export async function startApi(
  parts: ApiParts & {
    gatekeeper: Gatekeeper;
    log: Log;
    listen: { host: string; port: number };
    incoming: Incoming;
    metrics: Pick<Metrics, 'refused'>;
    tracer: Tracer | null;
  },
): Promise<
  {
    url: string;
    /** For the next handshakes; nothing where it is plain. */
    setCertificate(certificate: Certificate): void;
  } & AsyncDisposable
> {
  const { gatekeeper, log, listen, incoming, metrics, tracer } = parts;
  const countRefusal = metrics.refused;
  const server = buildServer({
    routes: apiRoutes(parts),
    gatekeeper,
    log,
    countRefusal,
    tracer,
    incoming,
  });
  await server.listen(listen);
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const scheme = incoming.certificate === undefined ? 'http' : 'https';
  return {
    url: `${scheme}://${host}:${listen.port}`,
    setCertificate: (certificate) => setCertificate(server, certificate),
    async [Symbol.asyncDispose]() {
      const closed = server.close();
      await Promise.race([closed, pause(DRAIN_MS, undefined, { ref: false })]);
      server.server.closeAllConnections();
      await closed;
    },
  };
}
