import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { within } from '#src/kernel/async/timeout.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import type { Tracer } from '#src/kernel/telemetry/tracer.ts';
import type { Gatekeeper } from './http/admission.ts';
import type { ApiDependencies } from './dependencies.ts';
import { setCertificate, type Certificate, type Incoming } from './http/tls.ts';
import { registerRoutes, type ApiAddition } from './routes.ts';
import { buildServer } from './http/server.ts';

/** Open requests get this long when the service stops; then their connections are closed. */
const DRAIN_MS = 3_000;

/**
 * Listens for requests. Disposing accepts no new connection, waits up to 3 s for open requests, and
 * stops. @throws if the port is in use (code EADDRINUSE)
 */
export async function startApi(
  dependencies: ApiDependencies & {
    /** What the features add. */
    added: readonly ApiAddition[];
    gatekeeper: Gatekeeper;
    log: Logger;
    listen: { host: string; port: number };
    connectionsMax: number;
    incoming: Incoming;
    metrics: Pick<Metrics, 'refused'>;
    tracer: Tracer | null;
  },
): Promise<
  {
    url: string;
    /** Replaces the certificate from the next handshake on; without TLS it has no effect. */
    setCertificate(certificate: Certificate): void;
  } & AsyncDisposable
> {
  const { added, gatekeeper, log, listen, incoming, metrics, tracer } = dependencies;
  const countRefusal = metrics.refused;
  const server = buildServer({
    routes: (scope) => registerRoutes(scope, dependencies, added),
    dialects: added.flatMap(({ dialect }) => dialect ?? []),
    gatekeeper,
    log,
    countRefusal,
    tracer,
    incoming,
    connectionsMax: dependencies.connectionsMax,
  });
  await server.listen(listen);
  const operators = await listenBeside(server.server, listen.host, gatekeeper.operatorPort ?? null);
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const scheme = incoming.certificate === undefined ? 'http' : 'https';
  return {
    url: `${scheme}://${host}:${listen.port}`,
    setCertificate: (certificate) => setCertificate(server, certificate),
    async [Symbol.asyncDispose]() {
      operators?.close();
      const closed = server.close();
      await within(DRAIN_MS, closed, () => undefined);
      server.server.closeAllConnections();
      await closed;
    },
  };
}

/** Hands the connections of a further port to the server, with all its bounds. */
async function listenBeside(
  server: HttpServer,
  host: string,
  port: number | null,
): Promise<Server | null> {
  if (port === null) return null;
  const beside = createServer({ noDelay: true }, (socket) => server.emit('connection', socket));
  beside.maxConnections = server.maxConnections;
  beside.listen({ host, port });
  await once(beside, 'listening');
  return beside;
}
