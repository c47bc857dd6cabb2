import { withPackages } from '#src/kernel/optional-package.ts';
import type { Tracer, TracingOptions } from './tracer.ts';

/** Beside `@opentelemetry/api`, which prom-client needs. */
const PACKAGES = [
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
] as const;

/** Loads the OpenTelemetry packages only if a collector is configured. */
export async function openTracer(options: TracingOptions): Promise<Tracer | null> {
  const { endpoint } = options;
  if (endpoint === null) return null;
  const { createOtlpTracer } = await withPackages(
    PACKAGES,
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    () => import('./trace-otlp.ts'),
  );
  return createOtlpTracer({ ...options, endpoint });
}
