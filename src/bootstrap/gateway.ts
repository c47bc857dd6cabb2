import { ensureCertificate } from '#src/gateway/certificate.ts';
import { gatewayMetrics, watchGateway } from '#src/gateway/metrics.ts';
import { startGateway } from '#src/gateway/gateway.ts';
import {
  closeWhenEnded,
  createAccessRecorder,
  createSessionDirectory,
} from '#src/gateway/access/session-lookup.ts';
import { createTickets } from '#src/gateway/access/ticket.ts';
import type { Infrastructure } from './infrastructure.ts';

export async function composeGateway(infrastructure: Infrastructure) {
  const { config, context, sessionEvents, log, masterKey, certificate, metrics, linkKeys } =
    infrastructure;
  const { port, tlsPort, publicWsUrl, publicWssUrl } = config.gateway;
  const { host } = config.api;
  const gateway = await startGateway({
    listen: { host, port },
    tls: {
      host,
      port: tlsPort,
      ...(certificate?.now ?? (await ensureCertificate(config.dataDir))),
    },
    trustedProxies: config.incoming.trustedProxies,
    publicUrls: { ws: publicWsUrl, wss: publicWssUrl },
    tickets: createTickets(Buffer.from(masterKey)),
    sessions: createSessionDirectory(context, linkKeys),
    onAccess: createAccessRecorder(context, log),
    metrics: gatewayMetrics(metrics),
    log,
  });
  watchGateway(metrics, gateway);
  certificate?.onChange((changed) => gateway.setCertificate(changed));
  const unwatch = closeWhenEnded(sessionEvents, gateway);
  return {
    async [Symbol.asyncDispose]() {
      unwatch();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
