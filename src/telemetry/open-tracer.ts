import type { Tracer, TracingOptions } from './tracer.ts';

/** Loads the OpenTelemetry packages only if a collector is configured. */
export async function openTracer(options: TracingOptions): Promise<Tracer | null> {
  const { endpoint } = options;
  if (endpoint === null) return null;
  const { createOtlpTracer } = await import('./trace-otlp.ts');
  return createOtlpTracer({ ...options, endpoint });
}
