import { optional, port, secret, url, type Values, variable } from './parse.ts';

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
  METRICS_PORT: variable(
    optional(port),
    '',
    'port of /metrics for a process without the role api; empty: none',
  ),
  METRICS_TOKEN: variable(
    optional(secret(16)),
    '',
    'bearer token that /metrics requires; empty: only clients on this machine',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(
    optional(url('http:', 'https:')),
    '',
    'address of an OpenTelemetry collector, as http://host:4318; empty: no traces',
  ),
} as const;

/** @throws BadConfig */
export function readTelemetry(values: Values<typeof telemetryVariables>): TelemetryConfig {
  return {
    metricsPort: values.METRICS_PORT,
    metricsToken: values.METRICS_TOKEN,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
  };
}
