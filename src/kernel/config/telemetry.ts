import { integer, secret, url, type Read } from './parse.ts';

/** Access to the metrics of this process, and the destination of its traces. */
export type TelemetryConfig = {
  /** Port that serves only `/metrics`, with or without the API in this process; null: none. */
  metricsPort: number | null;
  /** Required to read the metrics; null: only clients on this machine may read them. */
  metricsToken: string | null;
  /** Address of a collector, OTLP over HTTP; null: no traces. */
  otlpEndpoint: string | null;
};

export const telemetryVariables = {
  METRICS_PORT: {
    fallback: '',
    meaning: 'port of /metrics for a process without the role api; empty: none',
  },
  METRICS_TOKEN: {
    fallback: '',
    meaning: 'bearer token that /metrics requires; empty: only clients on this machine',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    fallback: '',
    meaning: 'address of an OpenTelemetry collector, as http://host:4318; empty: no traces',
  },
} as const;

/** @throws BadConfig */
export function readTelemetry(read: Read<keyof typeof telemetryVariables>): TelemetryConfig {
  const optional = (name: keyof typeof telemetryVariables) => read(name) || null;
  return {
    metricsPort: read('METRICS_PORT') === '' ? null : integer('METRICS_PORT', read, 1, 65_535),
    metricsToken: secret('METRICS_TOKEN', optional, 16),
    otlpEndpoint: url('OTEL_EXPORTER_OTLP_ENDPOINT', read, ['http:', 'https:']),
  };
}
