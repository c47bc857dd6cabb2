import { ensureCertificate } from '#src/gateway/certificate.ts';
import { gatewayMetrics, watchGateway } from '#src/gateway/metrics.ts';
import { startGateway } from '#src/gateway/gateway.ts';
import {
  closeWhenEnded,
  createAccessRecorder,
  createSessionDirectory,
} from '#src/gateway/access/session-lookup.ts';
import { createTickets } from '#src/gateway/access/ticket.ts';
import type { Ground } from './infrastructure.ts';

export async function composeGateway(ground: Ground) {
  const { config, desk, tail, log, masterKey, certificate, metrics } = ground;
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
    sessions: createSessionDirectory(desk),
    onAccess: createAccessRecorder(desk, log),
    metrics: gatewayMetrics(metrics),
    log,
  });
  watchGateway(metrics, gateway);
  certificate?.onChange((changed) => gateway.setCertificate(changed));
  const unwatch = closeWhenEnded(tail, gateway);
  return {
    async [Symbol.asyncDispose]() {
      unwatch();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
