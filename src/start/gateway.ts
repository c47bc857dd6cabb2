import { createAllowedOrigins } from '#src/roles/gateway/access/allowed-origins.ts';
import { ensureCertificate, keepRenewing } from '#src/roles/gateway/certificate.ts';
import { bidiLimits } from '#src/roles/gateway/bidi/bidi-processes.ts';
import { readProcessLimits } from '#src/kernel/host/process-limits.ts';
import { gatewayMetrics, watchGateway } from '#src/roles/gateway/metrics.ts';
import { startGateway } from '#src/roles/gateway/gateway.ts';
import {
  closeWhenEnded,
  createAccessRecorder,
  createSessionDirectory,
  createShareRecorder,
} from '#src/roles/gateway/access/session-lookup.ts';
import { followKeys } from '#src/roles/gateway/access/key-lookup.ts';
import { createTickets } from '#src/roles/gateway/access/ticket.ts';
import type { Infrastructure } from './infrastructure.ts';

export async function composeGateway(infrastructure: Infrastructure) {
  const { config, context, sessionEvents, log, masterKeys, certificate, metrics } = infrastructure;
  const { connection, eventsSilenceMs, linkKeys } = infrastructure;
  const reception = { isConnected: () => connection.isConnected(), eventsSilenceMs };
  const { port, tlsPort, publicWsUrl, publicWssUrl } = config.gateway;
  const { host } = config.api;
  await using stack = new AsyncDisposableStack();
  const keys = stack.use(await followKeys(context.eventStore, { reception, log }));
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
    tickets: createTickets(masterKeys.current.bytes),
    sessions: createSessionDirectory(context, { reception, linkKeys }),
    keys,
    // Beside other roles it leaves them what they need.
    limits: bidiLimits(readProcessLimits(), config.roles.length === 1 ? 1 / 2 : 1 / 4),
    debuggerPorts: config.gateway.debuggerPorts,
    allowedOrigins: createAllowedOrigins(context.eventStore),
    onAccess: createAccessRecorder(context, log),
    onShareUse: createShareRecorder(context, log),
    metrics: gatewayMetrics(metrics),
    log,
  });
  watchGateway(metrics, gateway);
  certificate?.onChange((changed) => gateway.setCertificate(changed));
  stack.use(gateway);
  if (certificate === null)
    stack.use(
      keepRenewing(config.dataDir, first, {
        onRenewed(renewed) {
          log.info('certificate of the gateway renewed');
          gateway.setCertificate(renewed);
        },
        onFailure: (error) =>
          log.error({ err: error }, 'renewing the certificate of the gateway failed'),
      }),
    );
  stack.defer(closeWhenEnded(sessionEvents, gateway));
  stack.defer(keys.closeWhenRevoked(gateway));
  return stack.move();
}
