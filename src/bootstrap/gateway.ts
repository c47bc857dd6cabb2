import { ensureCertificate, keepRenewing } from '#src/gateway/certificate.ts';
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
  const { config, context, sessionEvents, log, masterKey, certificate, metrics } = infrastructure;
  const { port, tlsPort, publicWsUrl, publicWssUrl } = config.gateway;
  const { host } = config.api;
  const first = certificate?.now ?? (await ensureCertificate(config.dataDir));
  const gateway = await startGateway({
    listen: { host, port },
    tls: {
      host,
      port: tlsPort,
      ...first,
    },
    trustedProxies: config.incoming.trustedProxies,
    publicUrls: { ws: publicWsUrl, wss: publicWssUrl },
    tickets: createTickets(Buffer.from(masterKey)),
    sessions: createSessionDirectory(context),
    onAccess: createAccessRecorder(context, log),
    metrics: gatewayMetrics(metrics),
    log,
  });
  watchGateway(metrics, gateway);
  certificate?.onChange((changed) => gateway.setCertificate(changed));
  const renewal =
    certificate === null
      ? keepRenewing(config.dataDir, first, {
          onRenewed(renewed) {
            log.info('certificate of the gateway renewed');
            gateway.setCertificate(renewed);
          },
          onFailure: (error) =>
            log.error({ err: error }, 'renewing the certificate of the gateway failed'),
        })
      : null;
  const unwatch = closeWhenEnded(sessionEvents, gateway);
  return {
    async [Symbol.asyncDispose]() {
      unwatch();
      await renewal?.[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
