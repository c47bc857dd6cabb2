import type { CertificateEnds } from '#src/start/certificate-facts.ts';
import type { ProjectionRunner } from '#projections/runner/run-projections.ts';
import type { Config, RoleName } from '#src/kernel/config/config.ts';
import type { Provisioner } from '#src/roles/provisioner/provisioner.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { FamilyOwner } from '#src/kernel/telemetry/metric-families.ts';
import { startMetricsListener } from '#src/kernel/telemetry/metrics-listener.ts';
import { openMetrics, type Metrics } from '#src/kernel/telemetry/metrics.ts';
import { openTracer } from '#src/kernel/telemetry/open-tracer.ts';
import { createReaderWatch, type ReaderWatch } from '#src/kernel/telemetry/reader-watch.ts';
import type { Tracer } from '#src/kernel/telemetry/tracer.ts';

export type Telemetry = {
  metrics: Metrics;
  readers: ReaderWatch;
  /** null: tracing is off. */
  tracer: Tracer | null;
};

/** A process with the role api also exports the metrics of the whole service. */
const ownersOf: Record<RoleName, FamilyOwner[]> = {
  api: ['service', 'api'],
  projector: ['projector'],
  provisioner: ['provisioner'],
  gateway: ['gateway'],
  timekeeper: [],
  archivist: [],
  webhooks: ['webhooks'],
};

/** Creates the metrics and the tracer of this process, and its metrics listener if configured. */
export async function composeTelemetry(
  { config, log }: { config: Config; log: Logger },
  stack: AsyncDisposableStack,
): Promise<Telemetry> {
  const { roles, api, telemetry } = config;
  const { metricsPort, metricsToken: token, otlpEndpoint: endpoint } = telemetry;
  const names = roles.join(',');
  const tracer = await openTracer({ endpoint, roles: names, log });
  if (tracer !== null) stack.use(tracer);
  const metrics = openMetrics({ roles: names, owners: roles.flatMap((role) => ownersOf[role]) });
  const readers = createReaderWatch();
  metrics.watch(['bss_reader_silence_seconds'], () => ({
    bss_reader_silence_seconds: readers.silences(),
  }));
  if (metricsPort !== null) {
    const listen = { host: api.host, port: metricsPort };
    stack.use(await startMetricsListener({ metrics, token, listen, log }));
  }
  return { metrics, readers, tracer };
}

const CERTIFICATES_EVERY_MS = 5 * 60_000;

/** Reads the certificates' ends at a scrape if the last read is older than 5 minutes. */
export function watchCertificateEnds(
  { metrics }: Telemetry,
  readEnds: () => Promise<CertificateEnds>,
): void {
  let last: { at: number; ends: CertificateEnds } | null = null;
  metrics.watch(['bss_certificate_left_seconds'], async () => {
    const now = Date.now();
    if (last === null || now - last.at > CERTIFICATES_EVERY_MS)
      last = { at: now, ends: await readEnds() };
    const left = Object.entries(last.ends).map(([name, end]) => [
      name,
      end === null ? Number.NaN : (end - now) / 1000,
    ]);
    return { bss_certificate_left_seconds: Object.fromEntries(left) as Record<string, number> };
  });
}

export function watchProjections({ metrics }: Telemetry, projecting: ProjectionRunner): void {
  metrics.watch(['bss_projection_lag_events', 'bss_projection_lag_seconds'], () => {
    const standings = projecting.status();
    const of = (number: (lag: { events: number; seconds: number }) => number) =>
      Object.fromEntries(standings.map(({ projection, lag }) => [projection, number(lag)]));
    return {
      bss_projection_lag_events: of(({ events }) => events),
      bss_projection_lag_seconds: of(({ seconds }) => seconds),
    };
  });
}

export function watchLeaks({ metrics }: Telemetry, provisioner: Provisioner): void {
  metrics.watch(['bss_server_leaked_browsers', 'bss_server_leaked_sessions'], () => {
    const { browsers, sessions } = provisioner.leaks();
    return { bss_server_leaked_browsers: browsers, bss_server_leaked_sessions: sessions };
  });
}
